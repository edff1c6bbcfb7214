import type { ProxySettings, RouteMoney, RouteRate, RouteSettings } from "./route-settings.ts";
import type { SettingValues } from "./setting-values.ts";

type PaidRoute = "DATACENTER" | "RESIDENTIAL" | "UNLOCKER" | "CLOUDFLARE_RENDER";

/** Nests the settings of the ways out; a route whose credentials are absent has null in their place. */
export function toRouteSettings(v: SettingValues): RouteSettings {
  const { SCRAPER_UNLOCKER_API_KEY: apiKey, SCRAPER_UNLOCKER_ZONE: zone } = v;
  const { SCRAPER_CLOUDFLARE_ACCOUNT_ID: accountId, SCRAPER_CLOUDFLARE_API_TOKEN: apiToken } = v;
  return {
    DIRECT: rateOf(v, "DIRECT"),
    DATACENTER: { ...rateOf(v, "DATACENTER"), ...moneyOf(v, "DATACENTER"), proxy: proxyOf(v, "DATACENTER") },
    RESIDENTIAL: { ...rateOf(v, "RESIDENTIAL"), ...moneyOf(v, "RESIDENTIAL"), proxy: proxyOf(v, "RESIDENTIAL") },
    UNLOCKER: {
      ...rateOf(v, "UNLOCKER"),
      ...moneyOf(v, "UNLOCKER"),
      api: apiKey === undefined || zone === undefined ? null : { url: v.SCRAPER_UNLOCKER_URL, apiKey, zone },
    },
    CLOUDFLARE_RENDER: {
      ...rateOf(v, "CLOUDFLARE_RENDER"),
      ...moneyOf(v, "CLOUDFLARE_RENDER"),
      api:
        accountId === undefined || apiToken === undefined
          ? null
          : { url: v.SCRAPER_CLOUDFLARE_URL, accountId, apiToken },
    },
    LOCAL_RENDER: {
      ...rateOf(v, "LOCAL_RENDER"),
      browser:
        v.SCRAPER_LOCAL_RENDER === "off"
          ? null
          : {
              executablePath: v.SCRAPER_CHROMIUM_PATH ?? null,
              jobsMax: v.SCRAPER_RENDER_BROWSER_JOBS_MAX,
              memoryBytesMax: v.SCRAPER_RENDER_BROWSER_MEMORY_MAX_BYTES,
            },
    },
  };
}

function rateOf(v: SettingValues, route: PaidRoute | "DIRECT" | "LOCAL_RENDER"): RouteRate {
  return {
    requestsPerSecond: v[`SCRAPER_${route}_REQUESTS_PER_SECOND`] ?? null,
    concurrency: v[`SCRAPER_${route}_CONCURRENCY`] ?? null,
  };
}

function moneyOf(v: SettingValues, route: PaidRoute): RouteMoney {
  return {
    priceMicros: v[`SCRAPER_${route}_PRICE_MICROS`] ?? null,
    dailyCapMicros: v[`SCRAPER_${route}_DAILY_CAP_MICROS`] ?? null,
    monthlyCapMicros: v[`SCRAPER_${route}_MONTHLY_CAP_MICROS`] ?? null,
  };
}

function proxyOf(v: SettingValues, route: "DATACENTER" | "RESIDENTIAL"): ProxySettings | null {
  const url = v[`SCRAPER_${route}_PROXY_URL`];
  if (url === undefined) return null;
  return {
    url,
    provider: v[`SCRAPER_${route}_PROXY_PROVIDER`],
    target: v[`SCRAPER_${route}_PROXY_TARGET`],
    caFile: v[`SCRAPER_${route}_PROXY_CA_FILE`] ?? null,
  };
}
