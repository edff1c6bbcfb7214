import type { Route } from "@keble-scraper/contract";
import type { CachedAnswer, StoredAnswer, StoredResult } from "@keble-scraper/db";
import type { FetchResponse, ResponseHeaders } from "@keble-scraper/egress";

/** A stored answer that is too old for its job, and that its target may vouch for again. */
export type Revalidation = { readonly answer: CachedAnswer; readonly stored: StoredAnswer };

/** The routes whose requests carry our headers to the target as they are. */
const PASSING_ROUTES: readonly Route[] = ["DIRECT", "DATACENTER", "RESIDENTIAL"];
/** The bound of a result's headers. */
const HEADER_BYTES_MAX = 16_384;
/** What a 304 says of itself, or of a body that it does not have (RFC 9111, 3.2). */
const OWN_HEADERS = /^(?:content-|transfer-encoding$|connection$|keep-alive$|proxy-|te$|trailer$|upgrade$|set-cookie$)/;

/** Whether asking "is it still this?" makes sense for an answer by this route. */
export function canRevalidate(answer: CachedAnswer, route: Route): boolean {
  return PASSING_ROUTES.includes(route) && (answer.etag !== null || answer.lastModified !== null);
}

/** The condition that a request carries. */
export function toConditions({ etag, lastModified }: CachedAnswer): Record<string, string> {
  return {
    ...(etag === null ? {} : { "if-none-match": etag }),
    ...(lastModified === null ? {} : { "if-modified-since": lastModified }),
  };
}

/**
 * Whether a 304 is of the very answer that is stored: of its URL, and, where both name their ETag, of the same one, weakly compared
 * (RFC 9111, 4.3.4).
 */
export function isVouchedFor(
  { answer, stored }: Revalidation,
  { finalUrl, headers }: Pick<FetchResponse, "finalUrl" | "headers">,
): boolean {
  const { etag } = headers;
  return (
    finalUrl === stored.result.finalUrl && (etag === undefined || answer.etag === null || isSameEtag(etag, answer.etag))
  );
}

function isSameEtag(one: string | readonly string[], other: string): boolean {
  return typeof one === "string" && one.replace(/^W\//, "") === other.replace(/^W\//, "");
}

/** What the job gets of an answer that was vouched for: as it was stored, with the headers that the 304 renewed. */
export function toRenewedResult({ stored }: Revalidation, headers: ResponseHeaders): StoredResult {
  const renewed = Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_HEADERS.test(name)));
  const merged = { ...stored.result.headers, ...renewed } as StoredResult["headers"];
  const fits = Buffer.byteLength(JSON.stringify(merged)) <= HEADER_BYTES_MAX;
  return { ...stored.result, headers: fits ? merged : stored.result.headers, fromCache: true, ageSeconds: 0 };
}
