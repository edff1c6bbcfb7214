import { createDohResolver } from "../dns/doh-resolver.ts";
import type { Resolver } from "../dns/resolver.ts";
import { createConnectDialer } from "../proxy/connect-dialer.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { createDirectDialer } from "./dial.ts";
import type { Dialer } from "./dialer.ts";
import type { PinnedClientOverrides } from "./pinned-client.ts";

/**
 * The way out of a developer's machine that has no network of its own: an HTTP proxy, and a DNS-over-HTTPS server behind
 * it. Development and test only; settings hold that, and that they come as a pair.
 */
export type DevelopmentEgress = { readonly proxyUrl: string; readonly dnsOverHttpsUrl: string };

/** What takes the place of a direct transport's own resolver and dialler. `close` ends the resolver's connections. */
export type DevelopmentParts = {
  readonly resolver: Resolver;
  readonly dial: Dialer;
  close(): Promise<void>;
  sockets(): number;
};

/**
 * Names that an operator listed are asked of `system` and dialled directly, as without it. All others are asked of the DNS
 * server through the proxy, vetted like any, and tunnelled to the address that was vetted: `CONNECT address:port`.
 */
export function createDevelopmentParts(options: {
  readonly egress: DevelopmentEgress;
  readonly system: Resolver;
  readonly policy: VetUrlOptions;
  readonly overrides: PinnedClientOverrides;
}): DevelopmentParts {
  const { egress, system, policy, overrides } = options;
  const { authorities } = overrides;
  const doh = createDohResolver({ url: egress.dnsOverHttpsUrl, proxyUrl: egress.proxyUrl, authorities });
  const direct = createDirectDialer(overrides);
  const tunnel = createConnectDialer({
    url: egress.proxyUrl,
    provider: "PLAIN",
    target: "ADDRESS",
    authorities,
    policy,
    wallMs: () => Date.now(),
  });
  const listed = policy.allowedTargets?.names ?? new Set<string>();
  return {
    resolver: {
      recall: (name) => (listed.has(name) ? system : doh).recall?.(name) ?? null,
      resolve: (name, asking) => (listed.has(name) ? system.resolve(name, asking) : doh.resolve(name, asking)),
    },
    async dial(target, stop, budgetMs, context) {
      if (target.reach !== "PUBLIC") return direct(target, stop, budgetMs, context);
      const dialled = await tunnel(target, stop, budgetMs, context);
      if (dialled.ok || dialled.kind !== "ROUTE") return dialled;
      // A developer's proxy is no supplier, with an account to mend or a route to close.
      const { code, nativeCode = null } = dialled.failure;
      const kind = code === "CONNECT_TIMEOUT" ? "CONNECT_TIMEOUT" : "CONNECT_UNREACHABLE";
      return { ok: false, kind, nativeCode: nativeCode ?? "DEVELOPMENT_PROXY" };
    },
    close: () => doh.close(),
    sockets: () => doh.sockets(),
  };
}
