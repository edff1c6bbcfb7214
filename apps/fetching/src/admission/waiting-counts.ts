import type { Clock } from "@keble-scraper/service";
import { remember } from "../remember.ts";
import type { AdmissionKey } from "./admission-key.ts";

/** How many jobs wait for a host or route, by and large: it spreads those that are sent back. */
export type WaitingCounts = {
  /** Never throws: while the count can't be read, the last one that was, else 0. */
  count(key: AdmissionKey): Promise<number>;
};

const FRESH_MS = 1_000;
const KEYS_MAX = 1_000;

type Entry = { atMs: number; value: number; pending: Promise<number> | null };

/** Counts at most once a second per key. */
export function createWaitingCounts(parts: {
  countWaitingJobs(key: AdmissionKey): Promise<number>;
  readonly clock: Clock;
}): WaitingCounts {
  const entries = new Map<AdmissionKey, Entry>();

  async function read(key: AdmissionKey, entry: Entry): Promise<number> {
    try {
      entry.value = await parts.countWaitingJobs(key);
    } catch {
      // It only spreads: an older figure does.
    } finally {
      entry.pending = null;
    }
    return entry.value;
  }

  return {
    count(key) {
      const nowMs = parts.clock.monotonicMs();
      const entry = entries.get(key) ?? { atMs: -Infinity, value: 0, pending: null };
      if (entry.pending !== null) return entry.pending;
      if (nowMs - entry.atMs < FRESH_MS) return Promise.resolve(entry.value);
      entry.atMs = nowMs;
      remember(entries, key, entry, KEYS_MAX);
      entry.pending = read(key, entry);
      return entry.pending;
    },
  };
}
