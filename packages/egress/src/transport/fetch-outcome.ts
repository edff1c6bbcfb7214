import type { LocalFailure, UpstreamFailure } from "@keble-scraper/contract";
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

/** What is known of an attempt however it ended. `sent`: a byte of a request was sent, robots.txt aside. */
type FetchEvidence = {
  readonly timings: FetchTimings;
  readonly sent: boolean;
};

/**
 * How an attempt ended. `aborted`: the caller's signal did it; the caller knows what that means. In a failure,
 * `httpStatus` is the last status that was received, null when there was none; bytes of a partial body are counted.
 */
export type FetchOutcome =
  | (FetchEvidence & { readonly ok: true; readonly response: FetchResponse })
  | (FetchEvidence & {
      readonly ok: false;
      readonly aborted: false;
      readonly failure: UpstreamFailure | LocalFailure;
      readonly httpStatus: number | null;
      readonly bodyBytes: number;
      readonly wireBytes: number;
    })
  | (FetchEvidence & {
      readonly ok: false;
      readonly aborted: true;
      readonly failure: null;
      readonly httpStatus: number | null;
      readonly bodyBytes: number;
      readonly wireBytes: number;
    });
