import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Settings } from "@keble-scraper/service";
import { CliError } from "./cli-error.ts";

/** Routes that read a file of authorities. */
const PROXIES = ["DATACENTER", "RESIDENTIAL"] as const;

/**
 * USAGE, with every fault at once and by the setting's name, when a file that a fetch worker reads at its start is not there
 * or holds no certificate. The parser of settings is pure and can't know.
 */
export function checkSettingFiles({ routes }: Pick<Settings, "routes">): void {
  const faults = PROXIES.flatMap((route) => {
    const caFile = routes[route].proxy?.caFile ?? null;
    return caFile === null || isCertificate(caFile)
      ? []
      : [`SCRAPER_${route}_PROXY_CA_FILE: no certificate in PEM there`];
  });
  if (faults.length > 0) throw new CliError("USAGE", `Some settings can't be used:\n${faults.join("\n")}`);
}

function isCertificate(file: string): boolean {
  try {
    return new X509Certificate(readFileSync(file)).subject !== "";
  } catch {
    return false;
  }
}
