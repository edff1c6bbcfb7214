import type { Capture } from "@keble-scraper/contract";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { AdmitHop } from "./admission.ts";

/** One attempt to fetch one resource. */
export type FetchRequest = {
  readonly url: VettedUrl;
  readonly method: "GET" | "HEAD";
  /** The caller's headers, checked against the allow-list. Dropped from the first cross-origin redirect on. */
  readonly headers: Readonly<Record<string, string>>;
  /** `SUCCESS_ONLY`: a final 2xx, or a 304 to a conditional request. `ANY_RESPONSE`: any final status but 429 and 5xx. */
  readonly accept: "SUCCESS_ONLY" | "ANY_RESPONSE";
  /** Media types or `type/*`; another declared type is refused before the body is read. Null: every type. */
  readonly contentTypes: readonly string[] | null;
  /** Decoded bytes. */
  readonly maxBodyBytes: number;
  /** Connections are never shared between callers. */
  readonly callerId: string;
  readonly robots: "RESPECT" | "IGNORE";
  /** The job's deadline in monotonic milliseconds (`performance.now()`). */
  readonly deadline: number;
  /** The attempt's hard limit, from now. */
  readonly attemptLimitMs: number;
  /** What a render keeps; plain HTTP routes ignore it. */
  readonly capture: Capture;
  /** Where a paid route should come out. `session`: equal ids share an exit, at most 32 of `a-z0-9`; null: any exit. */
  readonly egress: { readonly country: string | null; readonly session: string | null };
};

/** `signal` ends the attempt at once, in any phase; its reason stays the caller's to read. `admit` lets each request go. */
export type FetchControl = { readonly signal: AbortSignal; readonly admit: AdmitHop };
