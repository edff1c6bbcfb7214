import { type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { type BlockPage, detectBlockHead, detectBlockPage } from "../block-pages/detect-block-page.ts";
import type { RefusedBody } from "./fetch-outcome.ts";
import { judgeStatus, type StatusRules } from "./judge-status.ts";
import type { ResponseHead } from "./response-head.ts";

/** Why a page's answer is a failure by its head alone: a wall's mark, else its status. Null: it is acceptable. */
export function judgeAnswer(head: ResponseHead, rules: StatusRules): UpstreamFailure | null {
  const wall = detectBlockHead(head.httpStatus, head.headers);
  return wall === null ? judgeStatus(head, rules) : toBlocked(wall, head.httpStatus);
}

/** What a failed answer is, once its body was read: a wall's page says so in there. */
export function judgeRefusedBody<F>(
  failure: F,
  { httpStatus, headers }: Pick<ResponseHead, "httpStatus" | "headers">,
  body: RefusedBody | null,
): F | UpstreamFailure {
  const wall = body === null ? null : detectBlockPage({ httpStatus, headers, sample: body.bytes });
  return wall === null ? failure : toBlocked(wall, httpStatus);
}

/** What an attempt that met a wall ends with. */
export function toBlocked({ name }: BlockPage, httpStatus: number): UpstreamFailure {
  return upstreamFailure("BLOCKED", { httpStatus, nativeCode: name });
}
