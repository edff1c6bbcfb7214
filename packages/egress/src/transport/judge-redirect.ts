import type { UpstreamFailure } from "@keble-scraper/contract";
import { isRedirectStatus, nextUrl } from "../policy/next-url.ts";
import type { VettedUrl, VetUrlOptions } from "../policy/vet-url.ts";
import type { EgressLimits } from "./egress-limits.ts";
import { type FailureKind, toUpstreamFailure } from "./failure-kind.ts";
import type { ResponseHead } from "./response-head.ts";

/** The chain that a redirect would make longer. */
export type RedirectRules = {
  /** Of the hop that was answered. */
  readonly url: VettedUrl;
  /** URLs of the chain so far, this hop's among them. */
  readonly seen: ReadonlySet<string>;
  readonly redirectsFollowed: number;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
};

/** FINAL: the answer leads nowhere, whatever its status. */
export type RedirectVerdict =
  | { readonly kind: "FINAL" }
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | { readonly kind: "FAIL"; readonly failure: UpstreamFailure };

/** Whether a head is a redirect, and whether it may be followed: by the policy, once per URL, and a limited number of times. */
export function judgeRedirect(head: ResponseHead, rules: RedirectRules): RedirectVerdict {
  const { httpStatus } = head;
  const { url, seen, redirectsFollowed, policy, limits } = rules;
  if (!isRedirectStatus(httpStatus)) return { kind: "FINAL" };
  const fail = (kind: FailureKind): RedirectVerdict => ({
    kind: "FAIL",
    failure: toUpstreamFailure(kind, { httpStatus }),
  });
  const next = nextUrl(url, head.values("location"), policy);
  if (next.kind === "REJECTED") return fail("REDIRECT_REJECTED");
  if (next.kind === "INVALID") return fail("REDIRECT_INVALID");
  if (next.kind === "FINAL") return next;
  if (seen.has(next.url.href)) return fail("REDIRECT_LOOP");
  return redirectsFollowed >= limits.redirectsMax ? fail("REDIRECT_LIMIT") : next;
}
