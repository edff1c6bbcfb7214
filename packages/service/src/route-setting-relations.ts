import { isLoopbackHost } from "./setting-parsers.ts";
import type { SettingName } from "./setting-table.ts";
import type { SettingsFault, SettingValues } from "./setting-values.ts";

/** Settings that make sense together only: a lone one is a spelling mistake or half a secret's rotation. */
const PAIRS = [
  ["SCRAPER_UNLOCKER_API_KEY", "SCRAPER_UNLOCKER_ZONE"],
  ["SCRAPER_CLOUDFLARE_ACCOUNT_ID", "SCRAPER_CLOUDFLARE_API_TOKEN"],
  ["SCRAPER_DEVELOPMENT_HTTP_PROXY_URL", "SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL"],
] as const satisfies readonly (readonly [SettingName, SettingName])[];

/** What is said of a proxy that isn't there. */
const OF_A_PROXY = [
  ["SCRAPER_DATACENTER_PROXY_CA_FILE", "SCRAPER_DATACENTER_PROXY_URL"],
  ["SCRAPER_RESIDENTIAL_PROXY_CA_FILE", "SCRAPER_RESIDENTIAL_PROXY_URL"],
] as const satisfies readonly (readonly [SettingName, SettingName])[];

const DEVELOPMENT_EGRESS = [
  "SCRAPER_DEVELOPMENT_HTTP_PROXY_URL",
  "SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL",
] as const satisfies readonly SettingName[];

/** Where credentials or names are sent: in the clear only to this machine, and there only by a developer. */
const OUTSIDE_APIS = [
  "SCRAPER_UNLOCKER_URL",
  "SCRAPER_CLOUDFLARE_URL",
  "SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL",
] as const satisfies readonly SettingName[];

/** Every rule that spans the settings of the ways out. Neither flag is set when the environment is not known. */
export function* findRouteFaults(
  values: Partial<SettingValues>,
  environment: { readonly isLocal: boolean; readonly isDeployed: boolean },
): Generator<SettingsFault> {
  for (const [first, second] of PAIRS) {
    yield* lonely(values, first, second);
    yield* lonely(values, second, first);
  }
  for (const [name, proxy] of OF_A_PROXY) {
    yield* lonely(values, proxy, name);
  }
  if (environment.isDeployed) {
    for (const name of DEVELOPMENT_EGRESS) {
      if (values[name] !== undefined) {
        yield { name, message: "is for development and test only" };
      }
    }
  }
  for (const name of OUTSIDE_APIS) {
    const url = values[name];
    if (url !== undefined && isClear(url) && !(environment.isLocal && isLoopbackUrl(url))) {
      yield { name, message: "must be https; http is for loopback, in development and test" };
    }
  }
}

/** A fault of `name` when it is absent although `given` is there. */
function* lonely(values: Partial<SettingValues>, name: SettingName, given: SettingName): Generator<SettingsFault> {
  if (values[name] === undefined && values[given] !== undefined) {
    yield { name, message: `goes with ${given}` };
  }
}

function isClear(url: string): boolean {
  return new URL(url).protocol === "http:";
}

function isLoopbackUrl(url: string): boolean {
  return isLoopbackHost(new URL(url).hostname.replace(/^\[|\]$/gu, ""));
}
