import type { Socket } from "node:net";
import type { DnsFailureKind, Resolver } from "../dns/resolver.ts";
import { vetAddresses } from "../policy/vet-addresses.ts";
import { vetUrl, type VettedUrl, type VetUrlOptions } from "../policy/vet-url.ts";
import type { Dialer } from "../transport/dialer.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { FailureKind } from "../transport/failure-kind.ts";
import type { HopTimings } from "../transport/pinned-client.ts";
import { type Stop, STOPPED, untilStop } from "../transport/stop.ts";

/** What a connection for a page is made with: the same rules, resolver and dialler as a fetch. */
export type ReachParts = {
  readonly resolver: Resolver;
  readonly policy: VetUrlOptions;
  readonly limits: EgressLimits;
  readonly dial: Dialer;
};

/** A raw connection to a vetted address, or why there is none. REFUSED: the policy, or the job's bounds; nothing was dialled. */
export type Reached =
  | { readonly ok: true; readonly socket: Socket }
  | { readonly ok: false; readonly kind: FailureKind | "REFUSED" | "STOPPED"; readonly nativeCode: string | null };

/** Vets what a browser asked its proxy for, as strictly as what a caller asks us for; null when it may not be reached. */
export function vetProxied(text: string, policy: VetUrlOptions): VettedUrl | null {
  const vetted = vetUrl(text, policy);
  return vetted.ok ? vetted.url : null;
}

/** Resolves a vetted URL's host now, vets every answer, and dials one of them without TLS. */
export async function reachTarget(
  url: VettedUrl,
  asking: { readonly stop: Stop; readonly timings: HopTimings; readonly track: (raw: Socket) => void },
  parts: ReachParts,
): Promise<Reached> {
  const { stop, timings, track } = asking;
  let addresses = url.address === null ? [] : [url.address];
  if (url.name !== null) {
    const startedAt = performance.now();
    const resolved = await untilStop(stop, parts.resolver.resolve(url.name, { signal: stop.signal }));
    timings.dnsMs = (timings.dnsMs ?? 0) + performance.now() - startedAt;
    if (resolved === STOPPED) return { ok: false, kind: "STOPPED", nativeCode: null };
    if (!resolved.ok) return { ok: false, kind: DNS_KINDS[resolved.kind], nativeCode: resolved.nativeCode };
    const vetted = vetAddresses(resolved.addresses, { ...parts.policy, reach: url.reach });
    if (!vetted.ok) return { ok: false, kind: "REFUSED", nativeCode: null };
    addresses = vetted.addresses.slice(0, parts.limits.addressesMax);
  }
  const startedAt = performance.now();
  const target = { addresses, name: url.name, port: url.port, reach: url.reach, tls: null };
  const context = { track, egress: { country: null, session: null } };
  const dialled = await parts.dial(target, stop, parts.limits.connectTimeoutMs, context);
  timings.connectMs = (timings.connectMs ?? 0) + performance.now() - startedAt;
  if (dialled.ok) return { ok: true, socket: dialled.socket };
  // The dialler is the direct one, which knows no route's own failures.
  if (dialled.kind === "ROUTE") throw new Error("a direct dial failed as a route");
  return { ok: false, kind: dialled.kind, nativeCode: dialled.nativeCode };
}

const DNS_KINDS: Readonly<Record<DnsFailureKind, FailureKind>> = {
  dns_not_found: "DNS_NOT_FOUND",
  dns_no_address: "DNS_NO_ADDRESS",
  dns_servfail: "DNS_SERVFAIL",
  dns_timeout: "DNS_TIMEOUT",
};
