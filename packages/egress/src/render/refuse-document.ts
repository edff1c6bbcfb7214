import type { UpstreamFailure } from "@keble-scraper/contract";
import { detectBlockPage } from "../block-pages/detect-block-page.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { AttemptRecord } from "../transport/attempt-record.ts";
import type { FetchOutcome, RefusedBody } from "../transport/fetch-outcome.ts";
import { toBlocked } from "../transport/judge-head.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { REFUSED_BODY_BYTES_MAX } from "./read-refused-body.ts";

/** Evidence of a refused document, at most 256 KiB; null when there is none. */
export function createRefusedBody(
  bytes: Buffer | null,
  contentType: string | null,
  httpStatus: number,
  url: VettedUrl,
): RefusedBody | null {
  if (bytes === null) return null;
  return { bytes: bytes.subarray(0, REFUSED_BODY_BYTES_MAX), contentType, httpStatus, finalUrl: url.href };
}

/** The outcome of a document that is a failure by its head; a wall's page says in its body that it is one. */
export function refuseDocument(
  record: AttemptRecord,
  failure: UpstreamFailure,
  body: RefusedBody | null,
  { httpStatus, headers }: ResponseHead,
): FetchOutcome {
  const wall = body === null ? null : detectBlockPage({ httpStatus, headers, sample: body.bytes });
  return record.fail(wall === null ? failure : toBlocked(wall, httpStatus), body);
}
