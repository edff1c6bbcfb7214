/** Told of each claim: how many slots were free, and how many jobs it took. */
export type TellNext = (freeSlots: number, taken: number) => void;

/** How often a worker with more work than slots tells the next one. */
const APART_MS = 250;

/**
 * One ring of the bell wakes one worker. A claim that filled its slots may have left jobs behind: then the next worker is
 * told, four times a second at most.
 */
export function createTellNext(options: { ring(): void; monotonicMs(): number }): TellNext {
  let nextAtMs = Number.NEGATIVE_INFINITY;
  return (freeSlots, taken) => {
    const nowMs = options.monotonicMs();
    if (taken === 0 || taken < freeSlots || nowMs < nextAtMs) return;
    nextAtMs = nowMs + APART_MS;
    options.ring();
  };
}
