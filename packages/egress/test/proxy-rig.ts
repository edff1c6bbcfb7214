import {
  type ConnectProxy,
  type ConnectProxyOptions,
  type Origin,
  readTestAuthority,
  startConnectProxy,
} from "@keble-scraper/testkit";
import { type AdmitHop, createProxyTransport, type EgressLimits, type ProxyRoute } from "../src/index.ts";
import type { Resolver } from "../src/dns/resolver.ts";
import { createStubResolver, type Rig, toRig } from "./rig.ts";

/** A zone's credentials. The password is a canary: it may appear in no outcome and at no origin. */
export const ZONE = { userName: "brd-customer-hl_1a2b-zone-dc1", password: "canary-5f3a9c" };

/** Long enough for a busy machine, short enough to end a test. */
const PATIENT_LIMITS = { connectTimeoutMs: 10_000, responseTimeoutMs: 10_000, bodyIdleTimeoutMs: 10_000 };

export type ProxyRigOptions = {
  readonly route?: Partial<ProxyRoute>;
  readonly resolver?: Resolver;
  readonly limits?: Partial<EgressLimits>;
  readonly admit?: AdmitHop;
  /** Trusted instead of Node's; the test authority by default, null for Node's own. */
  readonly authorities?: readonly string[] | null;
};

/** A proxy transport whose policy sees public addresses, while `proxy` leads every tunnel where its test wants. */
export function createProxyRig(proxy: ConnectProxy, options: ProxyRigOptions = {}): Rig {
  const transport = createProxyTransport({
    route: "DATACENTER",
    proxy: { url: proxy.url(), provider: "PLAIN", target: "ADDRESS", ...options.route },
    resolver: options.resolver ?? createStubResolver(),
    limits: { ...PATIENT_LIMITS, ...options.limits },
    overrides: options.authorities === null ? {} : { authorities: options.authorities ?? [readTestAuthority()] },
  });
  return toRig(transport, [], options.admit);
}

/** A proxy with credentials, in front of `origin`. */
export function startZone(origin: Origin, options: Partial<ConnectProxyOptions> = {}): Promise<ConnectProxy> {
  return startConnectProxy({ to: origin.port, credentials: ZONE, ...options });
}
