import { detectCharset } from "../content/detect-charset.ts";
import { sniffType } from "../content/sniff-type.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { SinkStage } from "./body-stage.ts";
import type { FetchResponse } from "./fetch-outcome.ts";
import type { ResponseHead } from "./response-head.ts";

/** The answer of a chain that ended at `url`. `body`: what its body was read through; null when it has none. */
export async function toFetchResponse(
  head: ResponseHead,
  url: VettedUrl,
  { redirects, redirectHeaders }: Pick<FetchResponse, "redirects" | "redirectHeaders">,
  body: SinkStage | null,
  wireBytes: number,
): Promise<FetchResponse> {
  const declared = head.value("content-type");
  const sample = body?.sample() ?? Buffer.alloc(0);
  return {
    httpStatus: head.httpStatus,
    finalUrl: url.href,
    redirects,
    headers: head.headers,
    redirectHeaders,
    contentType: { declared, sniffed: await sniffType(sample, declared) },
    charset: detectCharset(sample, declared),
    framing: head.framing,
    bodyBytes: body?.bytes() ?? 0,
    wireBytes,
    hasBody: body !== null,
  };
}

/** Of an answer whose redirects, if any, nobody told us of. */
export const NO_REDIRECTS: Pick<FetchResponse, "redirects" | "redirectHeaders"> = {
  redirects: [],
  redirectHeaders: [],
};
