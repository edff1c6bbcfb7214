import { isAnswer, openRingLink, type RingLink } from "./bee-queue-adapter.ts";
import type { Component } from "./component.ts";
import type { HealthCheck } from "./health.ts";
import { createLinkSupervisor } from "./link-supervisor.ts";
import type { Logger } from "./logger.ts";
import { warnOfEviction } from "./redis-policy.ts";

/** The kinds of worker that can be woken, one queue each. */
export const BELL_KINDS = ["fetch", "render", "callbacks", "maintenance"] as const;
export type BellKind = (typeof BELL_KINDS)[number];

/** The ringing side of the doorbell. Postgres holds the truth: a ring may be lost, doubled or late without harm. */
export type Bell = Component & {
  /**
   * Rings soon: at once, or with others of its kind at the end of a 20 ms window, carrying the last payload. Never
   * throws, never waits; dropped while Redis is away (then rung once when it is back) and while over 1,000 entries wait.
   */
  ring(kind: BellKind, payload: object): void;
  /** Rings now, not coalesced. False when the ring was not taken or too many entries wait; never throws. */
  publish(kind: BellKind, payload: object): Promise<boolean>;
  /** Entries that wait to be taken; null when Redis does not say. */
  waiting(kind: BellKind): Promise<number | null>;
  /** `wakeup`: degraded without Redis, never down. */
  readonly check: HealthCheck;
};

/** Rings of one kind within this many milliseconds are one; measured: a window without a trailing edge loses the last. */
const WINDOW_MS = 20;
/** More entries than this say nothing new to workers that are behind anyway. */
export const WAITING_MAX = 1_000;
/** A stopping bell waits this long for a last ring. */
const LAST_RING_MS = 500;

type Line = { pending: object | undefined; isRinging: boolean; timer: NodeJS.Timeout | undefined; waiting: number };

/** Makes the ringing side. Redis may be away at any time, also at start. `prefix` should carry a hash tag. */
export function createBell(options: {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly logger: Logger;
}): Bell {
  const { redisUrl, prefix, logger } = options;
  const lines = new Map<BellKind, Line>(
    BELL_KINDS.map((kind) => [kind, { pending: undefined, isRinging: false, timer: undefined, waiting: 0 }]),
  );
  let isStopped = false;
  let isEvicting = false;
  const supervisor = createLinkSupervisor<RingLink>({
    name: "bell",
    logger,
    open: () => openRingLink(redisUrl, prefix, BELL_KINDS),
    onUp(link) {
      void warnOfEviction(link, logger).then((evicts) => {
        isEvicting = evicts;
      });
      for (const kind of BELL_KINDS) {
        flush(kind);
      }
    },
  });

  function lineOf(kind: BellKind): Line {
    const line = lines.get(kind);
    if (!line) {
      throw new Error(`there is no bell ${kind}`);
    }
    return line;
  }

  function flush(kind: BellKind): void {
    const line = lineOf(kind);
    const link = supervisor.current();
    // Without a link the last payload stays, and is rung when there is one.
    if (line.pending === undefined || line.isRinging || line.timer || !link) {
      return;
    }
    const payload = line.pending;
    line.pending = undefined;
    line.isRinging = true;
    void ringOn(link, kind, line, payload).finally(() => {
      line.isRinging = false;
      line.timer = setTimeout(() => {
        line.timer = undefined;
        flush(kind);
      }, WINDOW_MS);
    });
  }

  async function ringOn(link: RingLink, kind: BellKind, line: Line, payload: object): Promise<boolean> {
    try {
      if (line.waiting > WAITING_MAX) {
        line.waiting = await link.waiting(kind);
        if (line.waiting > WAITING_MAX) {
          return false;
        }
      }
      await link.ring(kind, payload);
      line.waiting = await link.waiting(kind);
      return true;
    } catch (error) {
      logger.debug({ bell: kind, err: error }, "ring.failed");
      if (!isStopped && !isAnswer(error)) {
        line.pending ??= payload;
        supervisor.rebuild(link);
      }
      return false;
    }
  }

  return {
    name: "bell",
    check: {
      name: "wakeup",
      check: () => Promise.resolve(isEvicting ? "degraded" : supervisor.state()),
    },
    ring(kind, payload) {
      if (!isStopped) {
        lineOf(kind).pending = payload;
        flush(kind);
      }
    },
    async publish(kind, payload) {
      const link = supervisor.current();
      return link !== undefined && !isStopped && ringOn(link, kind, lineOf(kind), payload);
    },
    async waiting(kind) {
      try {
        return (await supervisor.current()?.waiting(kind)) ?? null;
      } catch {
        return null;
      }
    },
    async start(signal) {
      signal.throwIfAborted();
      isStopped = false;
      await supervisor.start();
    },
    async stop(deadline) {
      const patienceMs = Math.min(LAST_RING_MS, Math.max(0, deadline - performance.now()));
      isStopped = true;
      await ringLast(patienceMs);
      for (const line of lines.values()) {
        clearTimeout(line.timer);
        line.timer = undefined;
        line.pending = undefined;
      }
      await supervisor.stop();
    },
  };

  async function ringLast(patienceMs: number): Promise<void> {
    const link = supervisor.current();
    if (!link || patienceMs === 0) {
      return;
    }
    const last = [...lines].flatMap(([kind, line]) =>
      line.pending === undefined ? [] : [link.ring(kind, line.pending).catch(() => undefined)],
    );
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs);
    });
    await Promise.race([Promise.all(last), late]);
    clearTimeout(timer);
  }
}
