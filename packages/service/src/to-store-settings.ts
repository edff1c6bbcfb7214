import { join } from "node:path";
import type { SettingValues } from "./setting-values.ts";
import type { StoreSettings } from "./settings.ts";

/** Where the local store's downloads are served when nothing is said: the port behind the services' own. */
const LOCAL_ARTIFACT_BASE_URL = "http://127.0.0.1:8796";

/** The S3 tuple is whole or absent by now. Without it the local store lies under the state directory, if nothing is said. */
export function toStoreSettings(v: SettingValues): StoreSettings {
  const { SCRAPER_S3_ENDPOINT: endpoint, SCRAPER_S3_BUCKET: bucket } = v;
  const { SCRAPER_S3_ACCESS_KEY_ID: accessKeyId, SCRAPER_S3_SECRET_ACCESS_KEY: secretAccessKey } = v;
  if (endpoint !== undefined && bucket !== undefined && accessKeyId !== undefined && secretAccessKey !== undefined) {
    const { hostname, origin } = new URL(endpoint);
    const isInPath = v.SCRAPER_S3_ADDRESSING === "auto" ? !hasSubdomains(hostname) : v.SCRAPER_S3_ADDRESSING === "path";
    return {
      kind: "S3",
      endpoint: origin,
      bucket,
      accessKeyId,
      secretAccessKey,
      prefix: v.SCRAPER_S3_PREFIX,
      region: v.SCRAPER_S3_REGION,
      dialect: speaksOss(v.SCRAPER_S3_DIALECT, hostname) ? "OSS" : "S3",
      addressing: isInPath ? "PATH" : "VIRTUAL_HOST",
    };
  }
  return {
    kind: "LOCAL",
    directory: v.SCRAPER_LOCAL_ARTIFACT_DIRECTORY ?? join(v.SCRAPER_STATE_DIRECTORY, "artifacts"),
    baseUrl: v.SCRAPER_LOCAL_ARTIFACT_BASE_URL ?? LOCAL_ARTIFACT_BASE_URL,
  };
}

/** Whether a host speaks Alibaba Cloud's dialect: said so, or below its domain when nothing is said. */
export function speaksOss(dialect: SettingValues["SCRAPER_S3_DIALECT"], hostname: string): boolean {
  return dialect === "auto" ? isBelow(hostname, "aliyuncs.com") : dialect === "oss";
}

function isBelow(hostname: string, domain: string): boolean {
  return hostname === domain || hostname.endsWith(`.${domain}`);
}

/** An address and a single label have no names below them that a bucket could be. */
function hasSubdomains(hostname: string): boolean {
  return (
    hostname.includes(".") &&
    !hostname.startsWith("[") &&
    !/^\d+(?:\.\d+){3}$/u.test(hostname) &&
    !isBelow(hostname, "localhost")
  );
}
