import { createSinkStage, type EndingSink, type SinkStage } from "./body-stage.ts";
import { createDecoders, parseContentCodings } from "./content-codings.ts";
import { type EgressLimits, responseCeilingBytes } from "./egress-limits.ts";
import type { HeadVerdict } from "./exchange.ts";
import type { ResponseHead } from "./response-head.ts";

/** The verdict of an acceptable response, with the stage that its body ends in; null when it has no body to read. */
export type ReadPlan = { readonly verdict: HeadVerdict; readonly body: SinkStage | null };

/**
 * How to read an acceptable response's body into `sink`: through its codings, at most `maxBodyBytes` decoded. What it
 * declares is checked first, so that a body that is too large by its own word costs nothing.
 */
export function planRead(head: ResponseHead, sink: EndingSink, maxBodyBytes: number, limits: EgressLimits): ReadPlan {
  if (!head.mayHaveBody) return { verdict: { do: "SKIP" }, body: null };
  const codings = parseContentCodings(head.values("content-encoding"), limits.codingsMax);
  if (codings === null || hasTransferCoding(head)) {
    return { verdict: { do: "FAIL", kind: "ENCODING_UNSUPPORTED" }, body: null };
  }
  const wireBytesMax = codings.length === 0 ? maxBodyBytes : maxBodyBytes + limits.wireSlackBytes;
  if (head.declaredBytes !== null && head.declaredBytes > wireBytesMax) {
    return { verdict: { do: "FAIL", kind: "BODY_TOO_LARGE" }, body: null };
  }
  const body = createSinkStage(sink, maxBodyBytes);
  const stage = createDecoders(codings, body, maxBodyBytes + limits.wireSlackBytes);
  const ceilingBytes = responseCeilingBytes(limits, wireBytesMax);
  return { verdict: { do: "READ", stage, wireBytesMax, ceilingBytes }, body };
}

/** Chunks are undone by whoever reads the connection; another coding of the transfer is by nobody, and was not asked for. */
function hasTransferCoding(head: ResponseHead): boolean {
  return !/^\s*(?:chunked\s*)?$/i.test(head.value("transfer-encoding") ?? "");
}
