import type { FetchResponse, ResponseHeaders } from "@keble-scraper/egress";
import type { ClaimedJob } from "../claimed-job.ts";

/** Request headers that say nothing of who asks. */
const ANYBODYS_HEADERS: readonly string[] = ["accept", "accept-language", "user-agent"];
/** Cache-Control directives by which a target keeps an answer to the one who asked (RFC 9111, 5.2.2). */
const OWN_DIRECTIVES: readonly string[] = ["private", "no-store"];

/** Whether a job asks for nothing but what any caller might: only then its answer may be another's. */
export function isAnybodysRequest({ target, egress }: Pick<ClaimedJob, "target" | "egress">): boolean {
  return (
    egress?.stickyKey === undefined && Object.keys(target.headers).every((name) => ANYBODYS_HEADERS.includes(name))
  );
}

/**
 * Whether an answer may be given to others than the caller whose job fetched it. So must be each redirect on the way: one that
 * sets a session's cookie may lead to a URL that names the session.
 */
export function isAnybodysAnswer({ headers, redirectHeaders }: AnswerHeaders): boolean {
  return [headers, ...redirectHeaders].every(isAnybodysHead);
}

/** The headers of an answer and of the redirects that led to it. */
export type AnswerHeaders = Pick<FetchResponse, "headers" | "redirectHeaders">;

function isAnybodysHead(headers: ResponseHeaders): boolean {
  if (headers["set-cookie"] !== undefined || tokensOf(headers["vary"]).includes("*")) return false;
  const directives = tokensOf(headers["cache-control"]).map((directive) => directive.split("=")[0]?.trim() ?? "");
  return !directives.some((directive) => OWN_DIRECTIVES.includes(directive));
}

function tokensOf(value: string | readonly string[] | undefined): string[] {
  const text = typeof value === "string" ? value : (value ?? []).join(",");
  return text.split(",").map((token) => token.trim().toLowerCase());
}
