import type { HealthState } from "./health.ts";
import type { Logger } from "./logger.ts";
import { pause, withTimeout } from "./timeout.ts";

/** One use of a connection: once lost it is thrown away and another is made. */
export type Link = {
  /** Settles when the link is lost; never rejects. */
  readonly lost: Promise<void>;
  /** Throws when the link does not do what it is for. Called at every probe interval. */
  probe(): Promise<void>;
  /** Frees everything; bounded; never throws. */
  close(): Promise<void>;
};

/** Keeps one link alive for ever. */
export type LinkSupervisor<T extends Link> = {
  /** The link, or `undefined` while there is none. */
  current(): T | undefined;
  /** Throws this link away, unless it was replaced already, and makes another. */
  rebuild(condemned: T): void;
  /** `degraded` while there is no link or its last probe failed. */
  state(): HealthState;
  /** Starts trying; waits for the first try, at most two seconds. Never fails because the other side is away. */
  start(): Promise<void>;
  stop(): Promise<void>;
};

/** A canary is sent this often; two that fail in a row condemn the link. */
const PROBE_INTERVAL_MS = 10_000;
const PROBE_TIMEOUT_MS = 2_000;
const PROBE_MISSES_MAX = 2;
/** Wait between tries: half to all of a ceiling that doubles up to 2 s, so that a link is back well within 15 s. */
const RETRY_BASE_MS = 100;
const RETRY_CEILING_MS = 2_000;
const FIRST_TRY_MS = 2_000;

/** Supervises what `open` makes. State changes are logged once each. */
export function createLinkSupervisor<T extends Link>(options: {
  readonly name: string;
  open(): Promise<T>;
  readonly onUp?: (link: T) => void;
  readonly logger: Logger;
  /** 10,000 when absent. */
  readonly probeIntervalMs?: number;
}): LinkSupervisor<T> {
  const { name, logger } = options;
  const probeIntervalMs = options.probeIntervalMs ?? PROBE_INTERVAL_MS;
  let link: T | undefined;
  let misses = 0;
  let stopped = new AbortController();
  let looping: Promise<void> | undefined;
  let isReportedDown = false;
  let condemn: (() => void) | undefined;

  async function loop(signal: AbortSignal, onFirstTry: () => void): Promise<void> {
    let tries = 0;
    while (!signal.aborted) {
      try {
        const opened = await options.open();
        const openedAt = performance.now();
        await keep(opened, signal, onFirstTry);
        // A link that is lost as soon as it is made is no reason to hurry.
        tries = performance.now() - openedAt < RETRY_CEILING_MS ? tries : 0;
      } catch (error) {
        reportDown(error);
      }
      onFirstTry();
      const ceilingMs = Math.min(RETRY_BASE_MS * 2 ** Math.min(tries, 10), RETRY_CEILING_MS);
      tries += 1;
      await pause(ceilingMs * (0.5 + Math.random() / 2), signal);
    }
  }

  async function keep(opened: T, signal: AbortSignal, onUp: () => void): Promise<void> {
    link = opened;
    misses = 0;
    const over = new AbortController();
    const end = () => over.abort();
    condemn = end;
    signal.addEventListener("abort", end, { once: true });
    void opened.lost.then(end);
    try {
      if (signal.aborted) {
        return;
      }
      if (isReportedDown) {
        logger.info({ link: name }, "link.recovered");
        isReportedDown = false;
      }
      options.onUp?.(opened);
      onUp();
      await probeUntilOver(opened, over.signal);
      if (!isAborted(signal)) {
        reportDown(new Error(misses >= PROBE_MISSES_MAX ? "probes failed" : "connection lost"));
      }
    } finally {
      signal.removeEventListener("abort", end);
      link = undefined;
      await opened.close();
    }
  }

  async function probeUntilOver(opened: T, over: AbortSignal): Promise<void> {
    while (misses < PROBE_MISSES_MAX) {
      await pause(probeIntervalMs, over);
      if (isAborted(over)) {
        return;
      }
      try {
        await withTimeout(opened.probe(), PROBE_TIMEOUT_MS, "probe");
        misses = 0;
      } catch (error) {
        misses += 1;
        logger.warn({ link: name, misses, err: error }, "link.probe_missed");
      }
    }
  }

  function reportDown(error: unknown): void {
    if (!isReportedDown) {
      isReportedDown = true;
      logger.warn({ link: name, err: error }, "link.lost");
    }
  }

  return {
    current: () => link,
    rebuild(condemned) {
      if (condemned === link) {
        condemn?.();
      }
    },
    state: () => (link && misses === 0 ? "ok" : "degraded"),
    async start() {
      if (looping) {
        return;
      }
      stopped = new AbortController();
      let onFirstTry = () => {};
      const firstTry = new Promise<void>((resolve) => {
        onFirstTry = resolve;
      });
      looping = loop(stopped.signal, () => onFirstTry());
      await withTimeout(firstTry, FIRST_TRY_MS, "first try").catch(() => undefined);
    },
    async stop() {
      stopped.abort();
      await looping;
      looping = undefined;
    },
  };
}

/** A call, because the compiler believes that a signal read once never changes. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
