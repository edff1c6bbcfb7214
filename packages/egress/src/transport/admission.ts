import type { VettedUrl } from "../policy/vet-url.ts";
import type { Stop } from "./stop.ts";

/** A request that is about to be sent. */
export type Hop = {
  readonly url: VettedUrl;
  /** ROBOTS: a robots.txt, which every job of that origin shares. */
  readonly purpose: "PAGE" | "ROBOTS";
  /** Nothing of this attempt was sent yet, robots.txt aside: it may still be released. */
  readonly isFirst: boolean;
  /** What robots.txt asks between two requests to this host; null: nothing. */
  readonly crawlDelayMs: number | null;
  /** Ends a wait. */
  readonly stop: Stop;
};

/** How long a hop would have to wait, both from now: `horizonMs` until it may be sent, `dueMs` until it is worth asking again. */
export type HopWait = { readonly horizonMs: number; readonly dueMs: number };

/**
 * GO: send it now, and call `done` when its exchange has ended, however it did. WAIT: nothing was booked, the attempt
 * ends here and comes back. STOPPED: the attempt's stop came first.
 */
export type HopVerdict =
  | { readonly kind: "GO"; readonly done: () => void }
  | { readonly kind: "WAIT"; readonly wait: HopWait }
  | { readonly kind: "STOPPED" };

/** Asked before every request that is sent, each redirect and each robots.txt too. */
export type AdmitHop = (hop: Hop) => Promise<HopVerdict>;

/** Lets everything go at once. */
export const ADMIT_ALL: AdmitHop = () => Promise.resolve({ kind: "GO", done() {} });
