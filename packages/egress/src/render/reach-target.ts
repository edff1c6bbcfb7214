import type { Socket } from "node:net";
import { vetUrl, type VettedUrl, type VetUrlOptions } from "../policy/vet-url.ts";
import type { Dialer } from "../transport/dialer.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { FailureKind } from "../transport/failure-kind.ts";
import type { HopTimings } from "../transport/hop-timings.ts";
import type { ResolveTarget } from "../transport/resolve-target.ts";
import type { Stop } from "../transport/stop.ts";

/** What a connection for a page is made with: the same way to its addresses, rules and dialler as a fetch. */
export type ReachParts = {
  readonly resolveTarget: ResolveTarget;
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
  const resolved = await parts.resolveTarget(url, stop, timings);
  if (!resolved.ok) {
    return { ok: false, kind: resolved.kind, nativeCode: resolved.kind === "REFUSED" ? null : resolved.nativeCode };
  }
  const startedAt = performance.now();
  const target = { addresses: resolved.addresses, name: url.name, port: url.port, reach: url.reach, tls: null };
  const context = { track, egress: { country: null, session: null } };
  const dialled = await parts.dial(target, stop, parts.limits.connectTimeoutMs, context);
  timings.connectMs = (timings.connectMs ?? 0) + performance.now() - startedAt;
  if (dialled.ok) return { ok: true, socket: dialled.socket };
  // The dialler is the direct one, which knows no route's own failures.
  if (dialled.kind === "ROUTE") throw new Error("a direct dial failed as a route");
  return { ok: false, kind: dialled.kind, nativeCode: dialled.nativeCode };
}
