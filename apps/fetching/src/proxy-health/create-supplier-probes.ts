import type { Route } from "@keble-scraper/contract";
import { createResolver, probeCloudflare, probeProxy, probeUnlocker } from "@keble-scraper/egress";
import type { ProxyHealthSettings } from "./proxy-health-settings.ts";
import type { SupplierProbe, SupplierProbes } from "./supplier-probe.ts";

/** The probes of the suppliers that are configured. DIRECT and LOCAL_RENDER need no supplier and have none. */
export function createSupplierProbes({ routes, fetching }: ProxyHealthSettings): SupplierProbes {
  const shared = { resolver: createResolver(), userAgent: fetching.userAgent };
  const probes = new Map<Route, SupplierProbe>();
  for (const route of ["DATACENTER", "RESIDENTIAL"] as const) {
    const { proxy } = routes[route];
    if (proxy !== null) probes.set(route, ({ timeoutMs, signal }) => probeProxy(proxy, { timeoutMs, signal }));
  }
  const unlocker = routes.UNLOCKER.api;
  if (unlocker !== null) probes.set("UNLOCKER", (question) => probeUnlocker(unlocker, { ...shared, ...question }));
  const cloudflare = routes.CLOUDFLARE_RENDER.api;
  if (cloudflare !== null) {
    probes.set("CLOUDFLARE_RENDER", (question) => probeCloudflare(cloudflare, { ...shared, ...question }));
  }
  return probes;
}
