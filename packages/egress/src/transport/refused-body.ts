import type { VettedUrl } from "../policy/vet-url.ts";
import { createPrefixStage } from "./body-stage.ts";
import { createDecoders, parseContentCodings } from "./content-codings.ts";
import { type EgressLimits, responseCeilingBytes } from "./egress-limits.ts";
import type { HeadVerdict } from "./exchange.ts";
import type { RefusedBody } from "./fetch-outcome.ts";
import type { ResponseHead } from "./response-head.ts";

/** Decoded bytes of a refused body that are kept. */
export const REFUSED_BYTES_MAX = 256 * 1024;

/** How long the body of a failed answer is read: it is evidence, and must not keep a slot or delay a host's hold. */
const REFUSED_MS_MAX = 5_000;

/** Evidence of what answered at `url`: `bytes`, past 256 KiB cut off, of an answer with that status and type. */
export function toRefusedBody(
  bytes: Buffer,
  { httpStatus, contentType }: Pick<RefusedBody, "httpStatus" | "contentType">,
  url: VettedUrl,
): RefusedBody {
  return { bytes: bytes.subarray(0, REFUSED_BYTES_MAX), contentType, httpStatus, finalUrl: url.href };
}

/** Reading the body of an answer that is a failure already. `read`: what came of it so far; null when that is nothing. */
export type RefusedReading = { readonly verdict: HeadVerdict; read(): RefusedBody | null };

/**
 * How to read the first bytes of a refused answer: at most 256 KiB and `bytesMax`, decoded, for at most 5 s. Nothing that
 * happens to it on the way changes what the answer is. One that cannot be decoded is not read.
 */
export function planRefusedRead(
  head: ResponseHead,
  url: VettedUrl,
  bytesMax: number,
  limits: EgressLimits,
): RefusedReading {
  const keptMax = Math.min(REFUSED_BYTES_MAX, bytesMax);
  const codings = head.mayHaveBody ? parseContentCodings(head.values("content-encoding"), limits.codingsMax) : null;
  if (codings === null || keptMax === 0) return { verdict: { do: "SKIP" }, read: () => null };
  const kept = createPrefixStage(keptMax);
  const wireBytesMax = keptMax + limits.wireSlackBytes;
  return {
    verdict: {
      do: "READ",
      stage: createDecoders(codings, kept, wireBytesMax),
      wireBytesMax,
      ceilingBytes: responseCeilingBytes(limits, wireBytesMax),
      enoughAfterMs: REFUSED_MS_MAX,
    },
    read() {
      const bytes = kept.read();
      if (bytes.length === 0) return null;
      return toRefusedBody(bytes, { httpStatus: head.httpStatus, contentType: head.value("content-type") }, url);
    },
  };
}
