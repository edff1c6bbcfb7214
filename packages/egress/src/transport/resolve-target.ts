import type { DnsFailureKind, Resolver } from "../dns/resolver.ts";
import { createAnswerVetter } from "../policy/answer-vetter.ts";
import type { AddressPolicy } from "../policy/classify-address.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { FailureKind } from "./failure-kind.ts";
import type { HopTimings } from "./hop-timings.ts";
import { type Stop, STOPPED, untilStop } from "./stop.ts";

/** REFUSED: one of the addresses may not be dialled. `block` and `hint` are for logs only: see `vetAddresses`. */
export type ResolvedTarget =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | { readonly ok: false; readonly kind: "REFUSED"; readonly block: string; readonly hint: string | null }
  | { readonly ok: false; readonly kind: FailureKind | "STOPPED"; readonly nativeCode: string | null };

/**
 * Where a vetted URL may be dialled now, the preferred address first. Asked for every connection and every use of one that
 * rests: nothing that was found out for another request counts. Adds to `timings.dnsMs`.
 */
export type ResolveTarget = (url: VettedUrl, stop: Stop, timings: HopTimings) => Promise<ResolvedTarget>;

/** `policy` judges the answers of names; literals were judged with their URL. */
export function createTargetResolver(options: {
  readonly resolver: Resolver;
  readonly policy: AddressPolicy;
  readonly limits: EgressLimits;
}): ResolveTarget {
  const { resolver, limits } = options;
  const vetAnswer = createAnswerVetter(options.policy);
  return async (url, stop, timings) => {
    if (url.name === null) return { ok: true, addresses: url.address === null ? [] : [url.address] };
    const startedAt = performance.now();
    const resolved =
      resolver.recall?.(url.name) ?? (await untilStop(stop, resolver.resolve(url.name, { signal: stop.signal })));
    timings.dnsMs = (timings.dnsMs ?? 0) + performance.now() - startedAt;
    if (resolved === STOPPED) return { ok: false, kind: "STOPPED", nativeCode: null };
    if (!resolved.ok) return { ok: false, kind: DNS_KINDS[resolved.kind], nativeCode: resolved.nativeCode };
    const vetted = vetAnswer(resolved.addresses, url.reach);
    if (!vetted.ok) return { ok: false, kind: "REFUSED", block: vetted.block, hint: vetted.hint };
    return { ok: true, addresses: vetted.addresses.slice(0, limits.addressesMax) };
  };
}

const DNS_KINDS: Readonly<Record<DnsFailureKind, FailureKind>> = {
  dns_not_found: "DNS_NOT_FOUND",
  dns_no_address: "DNS_NO_ADDRESS",
  dns_servfail: "DNS_SERVFAIL",
  dns_timeout: "DNS_TIMEOUT",
};
