import { setImmediate as turn } from "node:timers/promises";
import { currentPool, type PoolName } from "../src/index.ts";

type Call<L> = { readonly label: L; readonly pool: PoolName; open(): void; fail(error: Error): void };

/** A transport whose calls stay in flight until the test lets them go: no timers, so rounds can be counted exactly. */
export type GatedTransport<L> = {
  readonly send: (label: L) => Promise<L>;
  readonly sent: readonly { readonly label: L; readonly pool: PoolName }[];
  readonly running: readonly Call<L>[];
  readonly peak: number;
  /** Lets every running call go and waits until what they unblock has started. */
  round(): Promise<void>;
  /** Rounds until nothing runs; answers how many it took. */
  drain(): Promise<number>;
};

export function createGatedTransport<L = number>(): GatedTransport<L> {
  const sent: { label: L; pool: PoolName }[] = [];
  const running: Call<L>[] = [];
  let peak = 0;

  const send = (label: L): Promise<L> =>
    new Promise((resolve, reject) => {
      const end = (): void => void running.splice(running.indexOf(call), 1);
      const call: Call<L> = {
        label,
        pool: currentPool(),
        open: () => (end(), resolve(label)),
        fail: (error) => (end(), reject(error)),
      };
      sent.push({ label, pool: call.pool });
      running.push(call);
      peak = Math.max(peak, running.length);
    });

  const round = async (): Promise<void> => {
    for (const call of running.slice()) call.open();
    await settle();
  };

  return {
    send,
    sent,
    running,
    get peak() {
      return peak;
    },
    round,
    async drain() {
      await settle();
      let rounds = 0;
      for (; running.length > 0; rounds += 1) await round();
      return rounds;
    },
  };
}

/** Lets everything that can run without outside help run: promise jobs first, then one turn of the loop. */
export async function settle(): Promise<void> {
  await turn();
  await turn();
}

/** A seeded generator (mulberry32) for tests that want randomness they can repeat. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
