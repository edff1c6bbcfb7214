import { choice, count, number, text } from "./setting.ts";
import { parsePath, parseProxyUrl, tokenParser, urlParser } from "./setting-parsers.ts";

/** Who reads what a route needs, by the worker that serves it; the fetching service tells the others. */
const READERS = {
  DIRECT: ["fetching", "worker-fetch"],
  DATACENTER: ["fetching", "worker-fetch"],
  RESIDENTIAL: ["fetching", "worker-fetch"],
  UNLOCKER: ["fetching", "worker-fetch"],
  CLOUDFLARE_RENDER: ["fetching", "worker-render"],
  LOCAL_RENDER: ["fetching", "worker-render"],
} as const;
type RouteName = keyof typeof READERS;
const PRICE_MICROS_MAX = 1_000_000_000_000;
const HTTPS_URL = urlParser(["https", "http"], { bare: true });

function perSecond(route: RouteName) {
  return number({
    default: "none",
    absentHelp: "no limit",
    min: 0.01,
    max: 10_000,
    unit: "requests a second",
    help: `The most requests that leave by ${route} in any second, over all workers.`,
    readBy: READERS[route],
  });
}

function concurrency(route: RouteName) {
  return count({
    default: "none",
    absentHelp: "no limit",
    max: 100_000,
    unit: "requests",
    help: `The most requests that are under way by ${route} at once, over all workers.`,
    readBy: READERS[route],
  });
}

function price(route: RouteName, unit: string) {
  return number({
    default: "none",
    absentHelp: "the list price that `GET /v1/routes` shows with its source and date",
    min: 0,
    max: PRICE_MICROS_MAX,
    whole: true,
    unit: `micro-USD per ${unit}`,
    help: `What ${route} costs, undiscounted: reservations are made at this price.`,
    readBy: READERS[route],
  });
}

function cap(
  what: string,
  period: "day" | "month",
  readBy: readonly ("fetching" | "worker-fetch" | "worker-render")[],
) {
  return number({
    default: "none",
    absentHelp: "no cap",
    min: 0,
    max: PRICE_MICROS_MAX,
    whole: true,
    unit: "micro-USD",
    help: `The most that ${what} may cost in one ${period} (UTC).`,
    readBy,
  });
}

function proxyUrl(route: string) {
  return text({
    kind: "url",
    expects: "an http URL with user name and password, such as http://user:password@host:port",
    default: "none",
    absentHelp: `${route} is off`,
    secret: true,
    parse: parseProxyUrl,
    help: `The CONNECT proxy that ${route} leaves by. It is dialled as written, and nothing else private is.`,
    readBy: ["fetching", "worker-fetch", "worker-proxy-health"],
  });
}

function proxyProvider(route: string) {
  return choice({
    values: ["PLAIN", "BRIGHT_DATA"],
    default: "PLAIN",
    help: `Whose rules ${route}'s proxy follows: how countries and sticky sessions are written into the user name, and what its error codes mean.`,
    readBy: ["fetching", "worker-fetch", "worker-proxy-health"],
  });
}

function proxyTarget(route: string) {
  return choice({
    values: ["ADDRESS", "NAME"],
    default: "ADDRESS",
    help: `What ${route}'s proxy is asked to connect to. ADDRESS: the address we vetted. NAME: for proxies that refuse addresses; the name was vetted, the proxy resolves it again, and an answer that names another address than a public one is refused.`,
    readBy: ["worker-fetch"],
  });
}

function proxyCa(route: string) {
  return text({
    kind: "path",
    expects: "a path to a PEM file",
    default: "none",
    absentHelp: "the system's authorities",
    parse: parsePath,
    help: `Authorities that ${route} trusts beside the system's, for a provider that ends TLS itself.`,
    readBy: ["worker-fetch"],
  });
}

/** The settings of the ways out. A route without its credentials is off; DIRECT needs none. */
export const ROUTE_SETTINGS = {
  SCRAPER_DIRECT_REQUESTS_PER_SECOND: perSecond("DIRECT"),
  SCRAPER_DIRECT_CONCURRENCY: concurrency("DIRECT"),

  SCRAPER_DATACENTER_PROXY_URL: proxyUrl("DATACENTER"),
  SCRAPER_DATACENTER_PROXY_PROVIDER: proxyProvider("DATACENTER"),
  SCRAPER_DATACENTER_PROXY_TARGET: proxyTarget("DATACENTER"),
  SCRAPER_DATACENTER_PROXY_CA_FILE: proxyCa("DATACENTER"),
  SCRAPER_DATACENTER_REQUESTS_PER_SECOND: perSecond("DATACENTER"),
  SCRAPER_DATACENTER_CONCURRENCY: concurrency("DATACENTER"),
  SCRAPER_DATACENTER_PRICE_MICROS: price("DATACENTER", "gigabyte (10^9 bytes, both directions)"),
  SCRAPER_DATACENTER_DAILY_CAP_MICROS: cap("DATACENTER", "day", READERS.DATACENTER),
  SCRAPER_DATACENTER_MONTHLY_CAP_MICROS: cap("DATACENTER", "month", READERS.DATACENTER),

  SCRAPER_RESIDENTIAL_PROXY_URL: proxyUrl("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_PROXY_PROVIDER: proxyProvider("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_PROXY_TARGET: proxyTarget("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_PROXY_CA_FILE: proxyCa("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_REQUESTS_PER_SECOND: perSecond("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_CONCURRENCY: concurrency("RESIDENTIAL"),
  SCRAPER_RESIDENTIAL_PRICE_MICROS: price("RESIDENTIAL", "gigabyte (10^9 bytes, both directions)"),
  SCRAPER_RESIDENTIAL_DAILY_CAP_MICROS: cap("RESIDENTIAL", "day", READERS.RESIDENTIAL),
  SCRAPER_RESIDENTIAL_MONTHLY_CAP_MICROS: cap("RESIDENTIAL", "month", READERS.RESIDENTIAL),

  SCRAPER_UNLOCKER_API_KEY: text({
    kind: "token",
    expects: "8 to 512 visible ASCII characters",
    default: "none",
    absentHelp: "UNLOCKER is off",
    secret: true,
    parse: tokenParser(8, 512),
    help: "The key of Bright Data's API. Goes with SCRAPER_UNLOCKER_ZONE.",
    readBy: ["fetching", "worker-fetch", "worker-proxy-health"],
  }),
  SCRAPER_UNLOCKER_ZONE: text({
    kind: "text",
    expects: "1 to 64 of A-Z a-z 0-9 _",
    default: "none",
    absentHelp: "UNLOCKER is off",
    parse: (value) => (/^[A-Za-z0-9_]{1,64}$/u.test(value) ? value : undefined),
    help: "The Web Unlocker zone that requests are billed to.",
    readBy: ["fetching", "worker-fetch", "worker-proxy-health"],
  }),
  SCRAPER_UNLOCKER_URL: text({
    kind: "url",
    expects: "an https URL without credentials or query; http for loopback in development and test",
    default: { text: "https://api.brightdata.com" },
    parse: HTTPS_URL,
    help: "Where the Unlocker's API answers.",
    readBy: ["worker-fetch", "worker-proxy-health"],
  }),
  SCRAPER_UNLOCKER_REQUESTS_PER_SECOND: perSecond("UNLOCKER"),
  SCRAPER_UNLOCKER_CONCURRENCY: concurrency("UNLOCKER"),
  SCRAPER_UNLOCKER_PRICE_MICROS: price("UNLOCKER", "request"),
  SCRAPER_UNLOCKER_DAILY_CAP_MICROS: cap("UNLOCKER", "day", READERS.UNLOCKER),
  SCRAPER_UNLOCKER_MONTHLY_CAP_MICROS: cap("UNLOCKER", "month", READERS.UNLOCKER),

  SCRAPER_CLOUDFLARE_ACCOUNT_ID: text({
    kind: "text",
    expects: "32 hexadecimal digits",
    default: "none",
    absentHelp: "CLOUDFLARE_RENDER is off",
    parse: (value) => (/^[0-9a-fA-F]{32}$/u.test(value) ? value : undefined),
    help: "The account whose Browser Rendering is used. Goes with SCRAPER_CLOUDFLARE_API_TOKEN.",
    readBy: ["fetching", "worker-render", "worker-proxy-health", "up"],
  }),
  SCRAPER_CLOUDFLARE_API_TOKEN: text({
    kind: "token",
    expects: "8 to 512 visible ASCII characters",
    default: "none",
    absentHelp: "CLOUDFLARE_RENDER is off",
    secret: true,
    parse: tokenParser(8, 512),
    help: "An API token that may edit Browser Rendering.",
    readBy: ["fetching", "worker-render", "worker-proxy-health", "up"],
  }),
  SCRAPER_CLOUDFLARE_URL: text({
    kind: "url",
    expects: "an https URL without credentials or query; http for loopback in development and test",
    default: { text: "https://api.cloudflare.com/client/v4" },
    parse: HTTPS_URL,
    help: "Where Cloudflare's API answers.",
    readBy: ["worker-render", "worker-proxy-health"],
  }),
  SCRAPER_CLOUDFLARE_RENDER_REQUESTS_PER_SECOND: perSecond("CLOUDFLARE_RENDER"),
  SCRAPER_CLOUDFLARE_RENDER_CONCURRENCY: concurrency("CLOUDFLARE_RENDER"),
  SCRAPER_CLOUDFLARE_RENDER_PRICE_MICROS: price("CLOUDFLARE_RENDER", "browser hour"),
  SCRAPER_CLOUDFLARE_RENDER_DAILY_CAP_MICROS: cap("CLOUDFLARE_RENDER", "day", READERS.CLOUDFLARE_RENDER),
  SCRAPER_CLOUDFLARE_RENDER_MONTHLY_CAP_MICROS: cap("CLOUDFLARE_RENDER", "month", READERS.CLOUDFLARE_RENDER),

  SCRAPER_LOCAL_RENDER: choice({
    values: ["on", "off"],
    default: "off",
    help: "Whether pages may be rendered by a Chromium on the render worker's machine.",
    readBy: ["fetching", "worker-render", "up"],
  }),
  SCRAPER_CHROMIUM_PATH: text({
    kind: "path",
    expects: "a path",
    default: "none",
    absentHelp: "looked for in the usual places",
    parse: parsePath,
    help: "The Chromium or Chrome that LOCAL_RENDER runs.",
    readBy: ["worker-render"],
  }),
  SCRAPER_LOCAL_RENDER_REQUESTS_PER_SECOND: perSecond("LOCAL_RENDER"),
  SCRAPER_LOCAL_RENDER_CONCURRENCY: concurrency("LOCAL_RENDER"),
  SCRAPER_RENDER_BROWSER_JOBS_MAX: count({
    default: 100,
    max: 100_000,
    unit: "jobs",
    help: "How many jobs one browser renders before a fresh one takes its place.",
    readBy: ["worker-render"],
  }),
  SCRAPER_RENDER_BROWSER_MEMORY_MAX_BYTES: count({
    default: 2_147_483_648,
    min: 268_435_456,
    max: 137_438_953_472,
    unit: "bytes",
    help: "How much memory a browser and its pages may hold before a fresh one takes its place.",
    readBy: ["worker-render"],
  }),
  SCRAPER_PROXY_HEALTH_INTERVAL_SECONDS: number({
    default: 60,
    min: 0.05,
    max: 3_600,
    unit: "seconds",
    help: "How often the suppliers of quarantined routes are asked whether they serve again, give or take a tenth.",
    readBy: ["worker-proxy-health"],
  }),
  SCRAPER_CALLER_DAILY_CAP_MICROS: cap("one caller's jobs", "day", ["fetching", "worker-fetch", "worker-render"]),
  SCRAPER_CALLER_MONTHLY_CAP_MICROS: cap("one caller's jobs", "month", ["fetching", "worker-fetch", "worker-render"]),
} as const;
