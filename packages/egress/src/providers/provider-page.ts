import type { BodyScreen } from "../block-pages/body-screen.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { RefusedBody } from "../transport/fetch-outcome.ts";
import { judgeRefusedBody, toBlocked } from "../transport/judge-answer.ts";
import type { HopDecision } from "../transport/judge-head.ts";
import { toRefusedBody } from "../transport/refused-body.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import type { ProviderCallEnd } from "./provider-transport.ts";

type Failed = Extract<ProviderCallEnd, { readonly kind: "FAILED" }>;

/** A target's failed answer as a provider delivered it, with what was read of its body; a wall's page says so in there. */
export function failedPage(head: ResponseHead, decision: Extract<HopDecision, { readonly kind: "FAIL" }>): Failed {
  return refusedPage(head, decision.failure, decision.refused?.read() ?? null);
}

/** The same, for a body that was read already. */
export function refusedPage(head: ResponseHead, failure: Failed["failure"], refusedBody: RefusedBody | null): Failed {
  return {
    kind: "FAILED",
    failure: judgeRefusedBody(failure, head, refusedBody),
    httpStatus: head.httpStatus,
    refusedBody,
  };
}

/** An answer that turned out to be a wall's page; none of it went to the sink. */
export function walledPage(
  head: ResponseHead,
  { page, bytes }: NonNullable<ReturnType<BodyScreen["found"]>>,
  url: VettedUrl,
): Failed {
  const { httpStatus } = head;
  const refusedBody = toRefusedBody(bytes, { httpStatus, contentType: head.value("content-type") }, url);
  return { kind: "FAILED", failure: toBlocked(page, httpStatus), httpStatus, refusedBody };
}
