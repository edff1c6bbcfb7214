import { createWatch } from "../create-watch.ts";
import type { S3Operation } from "./perform-operation.ts";

/** What goes wrong with one request. Bytes are counted in the body; a body that is shorter is cut at its end. */
export type S3Fault =
  /** Refused with this status and code; nothing is done. A HEAD carries no code, as with S3. */
  | {
      readonly kind: "STATUS";
      readonly status: number;
      readonly code: string;
      readonly message?: string;
      readonly retryAfterSeconds?: number;
    }
  /** The connection is cut; nothing is done. */
  | { readonly kind: "CUT_BEFORE_HEAD" }
  /** Everything is done; then the connection is cut without an answer. */
  | { readonly kind: "LOSE_ANSWER" }
  /** The connection is cut once so much of the request's body has come in; nothing is done. */
  | { readonly kind: "CUT_REQUEST"; readonly afterBytes: number }
  /** The connection is cut once so much of the answer's body has gone out. */
  | { readonly kind: "CUT_ANSWER"; readonly afterBytes: number }
  /** So much of the answer's body goes out, and then nothing more; the connection stays. */
  | { readonly kind: "STALL_ANSWER"; readonly afterBytes: number }
  /** Goes on, in the ordinary way, once `until` is settled, or after so many milliseconds. */
  | { readonly kind: "DELAY"; readonly until: Promise<unknown> | number }
  /** Takes the request in and never answers. */
  | { readonly kind: "HANG" }
  /** Everything is done; the answer's document is cut in the middle, in a complete response. */
  | { readonly kind: "TRUNCATE_XML" }
  /** 200 with an error document, as S3 answers a completion that fails late; nothing is done. */
  | { readonly kind: "ERROR_IN_OK"; readonly code: string };

/** Ready-made faults: an internal error, a wish to go slower, a full disk as MinIO says it, a right that is missing. */
export const S3_FAULTS = {
  INTERNAL_ERROR: { kind: "STATUS", status: 500, code: "InternalError" },
  SLOW_DOWN: { kind: "STATUS", status: 503, code: "SlowDown", retryAfterSeconds: 1 },
  DISK_FULL: { kind: "STATUS", status: 507, code: "XMinioStorageFull" },
  FORBIDDEN: { kind: "STATUS", status: 403, code: "AccessDenied" },
} as const satisfies Record<string, S3Fault>;

/** Which requests a fault meets. Everything absent matches. Requests with a wrong signature never meet one. */
export type S3FaultMatcher = {
  readonly operation?: S3Operation | readonly S3Operation[];
  /** The whole key, or a pattern it matches. Operations on the bucket have the key "". */
  readonly key?: string | RegExp;
  /** How many requests: 1. Infinity: until it is lifted. */
  readonly times?: number;
};

/** A fault that was set. */
export type SetFault = {
  /** How many requests have met it. */
  readonly hits: number;
  /** Resolves when so many requests (1) have met it. */
  reached(hits?: number): Promise<void>;
  /** No further request meets it; what it holds stays held. */
  lift(): void;
};

/** The faults of a server. The one set first is met first. */
export type FaultTable = {
  set(matcher: S3FaultMatcher, fault: S3Fault): SetFault;
  /** The fault that this request meets, counted as met. */
  take(operation: S3Operation, key: string): S3Fault | undefined;
};

type Entry = {
  readonly operations: readonly S3Operation[] | undefined;
  readonly key: string | RegExp | undefined;
  readonly fault: S3Fault;
  left: number;
  hits: number;
};

/** No faults yet. */
export function createFaultTable(): FaultTable {
  const entries = new Set<Entry>();
  const { changed, until } = createWatch();
  return {
    set({ operation, key, times = 1 }, fault) {
      const operations = typeof operation === "string" ? [operation] : operation;
      const entry: Entry = { operations, key, fault, left: times, hits: 0 };
      entries.add(entry);
      return {
        get hits() {
          return entry.hits;
        },
        reached: (hits = 1) => until(() => (entry.hits >= hits ? true : undefined)).then(() => undefined),
        lift: () => void entries.delete(entry),
      };
    },
    take(operation, key) {
      const entry = [...entries].find((candidate) => isMet(candidate, operation, key));
      if (entry === undefined) return undefined;
      entry.hits += 1;
      entry.left -= 1;
      if (entry.left <= 0) entries.delete(entry);
      changed();
      return entry.fault;
    },
  };
}

function isMet({ operations, key }: Entry, operation: S3Operation, requested: string): boolean {
  if (operations !== undefined && !operations.includes(operation)) return false;
  return key === undefined || (typeof key === "string" ? key === requested : key.test(requested));
}
