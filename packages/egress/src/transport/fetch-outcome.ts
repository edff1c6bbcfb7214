import type { LocalFailure, UpstreamFailure } from "@keble-scraper/contract";
import type { HopWait } from "./admission.ts";
import type { Framing, ResponseHeaders } from "./response-head.ts";

/** Whole milliseconds; null when the phase was not reached. `ttfbMs`: from the attempt's start to the final response's head. */
export type FetchTimings = {
  readonly dnsMs: number | null;
  readonly connectMs: number | null;
  readonly ttfbMs: number | null;
  readonly totalMs: number;
};

/** The final response of a chain. Its body went to the sink. */
export type FetchResponse = {
  readonly httpStatus: number;
  readonly finalUrl: string;
  /** The URLs that answered with a followed redirect, in order. */
  readonly redirects: readonly { readonly url: string; readonly httpStatus: number }[];
  readonly headers: ResponseHeaders;
  /** The headers of those redirects, in order. Empty too where a provider followed them and did not say. */
  readonly redirectHeaders: readonly ResponseHeaders[];
  /** `declared`: the header's value. `sniffed`: what the first bytes are; null for an empty body. */
  readonly contentType: { readonly declared: string | null; readonly sniffed: string | null };
  readonly charset: { readonly declared: string | null; readonly detected: string | null };
  /** With `CLOSE`, a cut body cannot be told from a whole one. */
  readonly framing: Framing;
  /** Decoded. */
  readonly bodyBytes: number;
  /** Before decoding. */
  readonly wireBytes: number;
  /** False for HEAD, 204 and 304: there is nothing to store, which is not the same as an empty page. */
  readonly hasBody: boolean;
};

/** What an attempt used, for its price. Zero where the route does not count it. */
export type AttemptUsage = {
  /** Requests that the supplier bills when they succeed. */
  readonly requests: number;
  /** Raw socket bytes, both directions, all hops, handshakes included. */
  readonly socketBytes: number;
  readonly browserMs: number;
  /** What the supplier itself says about billing; null: it said nothing. */
  readonly isBilled: boolean | null;
  /** The supplier's own id of the request. */
  readonly providerRequestId: string | null;
};

/** An attempt that used nothing that costs. */
export const FREE_USAGE: AttemptUsage = {
  requests: 0,
  socketBytes: 0,
  browserMs: 0,
  isBilled: null,
  providerRequestId: null,
};

/** The refused body of a blocked or failed answer, cut at 256 KiB; kept with the attempt as its evidence. */
export type RefusedBody = {
  readonly bytes: Buffer;
  readonly contentType: string | null;
  readonly httpStatus: number;
  readonly finalUrl: string;
};

/**
 * What is known of an attempt however it ended. `sent`: a byte of a request was sent, robots.txt aside. `hostKey`: of the
 * URL that was asked last (see `hostKeyOf`).
 */
type FetchEvidence = {
  readonly timings: FetchTimings;
  readonly sent: boolean;
  readonly hostKey: string;
  readonly usage: AttemptUsage;
};

/**
 * How an attempt ended. `aborted`: the caller did it, by its signal, or by its admission: then `wait` is set. In a failure,
 * `httpStatus` is the last status that was received, null when there was none; bytes of a partial body are counted.
 */
export type FetchOutcome =
  | (FetchEvidence & { readonly ok: true; readonly response: FetchResponse })
  | (FetchEvidence & {
      readonly ok: false;
      readonly aborted: false;
      readonly failure: UpstreamFailure | LocalFailure;
      readonly refusedBody: RefusedBody | null;
      readonly httpStatus: number | null;
      readonly bodyBytes: number;
      readonly wireBytes: number;
    })
  | (FetchEvidence & {
      readonly ok: false;
      readonly aborted: true;
      readonly failure: null;
      readonly wait: HopWait | null;
      readonly httpStatus: number | null;
      readonly bodyBytes: number;
      readonly wireBytes: number;
    });
