import type { BodyStage } from "../transport/body-stage.ts";
import { createDecoders, parseContentCodings } from "../transport/content-codings.ts";
import { type EgressLimits, responseCeilingBytes } from "../transport/egress-limits.ts";
import type { HeadVerdict } from "../transport/exchange.ts";
import type { ResponseHead } from "../transport/response-head.ts";

/** Feeds a body through its codings into `last`, which bounds what it takes; `bytesMax` bounds what comes before it. */
export function readThrough(head: ResponseHead, last: BodyStage, bytesMax: number, limits: EgressLimits): HeadVerdict {
  if (!head.mayHaveBody) return { do: "SKIP" };
  const codings = parseContentCodings(head.values("content-encoding"), limits.codingsMax);
  if (codings === null) return { do: "FAIL", kind: "ENCODING_UNSUPPORTED" };
  const wireBytesMax = bytesMax + limits.wireSlackBytes;
  const stage = createDecoders(codings, last, wireBytesMax);
  return { do: "READ", stage, wireBytesMax, ceilingBytes: responseCeilingBytes(limits, wireBytesMax) };
}
