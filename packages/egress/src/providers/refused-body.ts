import { type BodyStage, createHeadOfBody, EnoughRead } from "../transport/body-stage.ts";
import { createDecoders, parseContentCodings } from "../transport/content-codings.ts";
import { type EgressLimits, responseCeilingBytes } from "../transport/egress-limits.ts";
import type { HeadVerdict } from "../transport/exchange.ts";
import type { RefusedBody } from "../transport/fetch-outcome.ts";
import type { ResponseHead } from "../transport/response-head.ts";

/** What is kept of a refused body as its attempt's evidence. */
export const REFUSED_BYTES_MAX = 256 * 1024;

/** The evidence of a refused answer; null when there is nothing of its body. */
export function toRefusedBody(bytes: Buffer, head: ResponseHead, finalUrl: string): RefusedBody | null {
  if (bytes.length === 0) return null;
  return { bytes, contentType: head.value("content-type"), httpStatus: head.httpStatus, finalUrl };
}

/** Reads a body to its end, or to its first `bytesMax` decoded bytes, and keeps these. */
export type KeptBody = { readonly verdict: HeadVerdict; read(): Buffer };

/** A body that is wanted for what it says, not for itself: one that can't be decoded is not read. */
export function keepBody(head: ResponseHead, bytesMax: number, limits: EgressLimits): KeptBody {
  const kept = createHeadOfBody(bytesMax);
  let readBytes = 0;
  const last: BodyStage = {
    write(chunk) {
      kept.add(chunk);
      readBytes += chunk.length;
      if (readBytes >= bytesMax) throw new EnoughRead();
    },
    end() {},
    abandon() {},
  };
  return { verdict: readThrough(head, last, bytesMax + limits.wireSlackBytes, limits), read: kept.read };
}

/** Feeds a body through its codings into `last`, which says when it has enough; `wireBytesMax` bounds what is coded. */
export function readThrough(
  head: ResponseHead,
  last: BodyStage,
  wireBytesMax: number,
  limits: EgressLimits,
): HeadVerdict {
  if (!head.mayHaveBody) return { do: "SKIP" };
  const codings = parseContentCodings(head.values("content-encoding"), limits.codingsMax);
  if (codings === null) return { do: "FAIL", kind: "ENCODING_UNSUPPORTED" };
  return {
    do: "READ",
    stage: createDecoders(codings, last, wireBytesMax + limits.wireSlackBytes),
    // A chunk may go beyond what `last` takes: it is `last` that ends the reading then.
    wireBytesMax: wireBytesMax + limits.wireSlackBytes,
    ceilingBytes: responseCeilingBytes(limits, wireBytesMax + limits.wireSlackBytes),
  };
}
