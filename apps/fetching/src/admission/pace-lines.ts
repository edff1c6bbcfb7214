import type { AdmissionKey } from "./admission-key.ts";

/** A place in a line. */
export type LinePlace = {
  readonly key: AdmissionKey;
  readonly isFirst: boolean;
  /** Calls `wake` once when the place has become the first. Returns how to take it off. */
  onFirst(wake: () => void): () => void;
  /** Any number of times. */
  leave(): void;
};

/**
 * The requests of this process that are late for the pace of a host or route, one behind the other: only the first of them
 * asks, so however many there are they cost one process's steps, and nobody is overtaken within it.
 */
export type PaceLines = {
  /** At the end of the line of `key`. */
  join(key: AdmissionKey): LinePlace;
  has(key: AdmissionKey): boolean;
};

/** Makes the lines of one process. */
export function createPaceLines(): PaceLines {
  const lines = new Map<AdmissionKey, Set<{ wake?: () => void }>>();

  function firstOf(key: AdmissionKey): { wake?: () => void } | undefined {
    for (const first of lines.get(key) ?? []) return first;
    return undefined;
  }

  return {
    has: (key) => lines.has(key),
    join(key) {
      const line = lines.get(key) ?? new Set();
      const own: { wake?: () => void } = {};
      lines.set(key, line.add(own));
      return {
        key,
        get isFirst() {
          return firstOf(key) === own;
        },
        onFirst(wake) {
          own.wake = wake;
          return () => {
            delete own.wake;
          };
        },
        leave() {
          const wasFirst = firstOf(key) === own;
          if (!line.delete(own)) return;
          if (line.size === 0) lines.delete(key);
          else if (wasFirst) firstOf(key)?.wake?.();
        },
      };
    },
  };
}
