import { isLoopbackHost } from "./setting-parsers.ts";
import type { SettingName } from "./setting-table.ts";
import type { SettingsFault, SettingValues } from "./setting-values.ts";
import { speaksOss } from "./to-store-settings.ts";

const S3_TUPLE = [
  "SCRAPER_S3_ENDPOINT",
  "SCRAPER_S3_BUCKET",
  "SCRAPER_S3_ACCESS_KEY_ID",
  "SCRAPER_S3_SECRET_ACCESS_KEY",
] as const satisfies readonly SettingName[];

const LOCAL_STORE = [
  "SCRAPER_LOCAL_ARTIFACT_DIRECTORY",
  "SCRAPER_LOCAL_ARTIFACT_BASE_URL",
] as const satisfies readonly SettingName[];

type EnvironmentKind = { readonly isLocal: boolean; readonly isDeployed: boolean };

/** Every rule that spans the settings of the artifact store. Neither flag is set when the environment is not known. */
export function* findStoreFaults(
  values: Partial<SettingValues>,
  environment: EnvironmentKind,
): Generator<SettingsFault> {
  yield* s3StoreFaults(values, environment);
  yield* localStoreFaults(values, environment);
}

/** The tuple is whole or absent; staging and production have no other store. */
function* s3StoreFaults(values: Partial<SettingValues>, { isDeployed }: EnvironmentKind): Generator<SettingsFault> {
  const missing = S3_TUPLE.filter((name) => values[name] === undefined);
  const isAbsent = missing.length === S3_TUPLE.length;
  if (isAbsent && isDeployed) {
    yield { name: "SCRAPER_S3_ENDPOINT", message: "is required in staging and production: they keep artifacts in S3" };
  }
  if (!isAbsent) {
    for (const name of missing) {
      yield { name, message: "goes with the other three of endpoint, bucket, access key id and secret access key" };
    }
    for (const name of LOCAL_STORE) {
      if (values[name] !== undefined && !isDeployed) {
        yield { name, message: "names a second store beside SCRAPER_S3_ENDPOINT" };
      }
    }
  }
  const { SCRAPER_S3_ENDPOINT: endpoint } = values;
  if (endpoint === undefined) return;
  const { hostname, pathname } = new URL(endpoint);
  if (pathname !== "/") {
    yield { name: "SCRAPER_S3_ENDPOINT", message: "must have no path" };
  }
  const { SCRAPER_S3_DIALECT: dialect, SCRAPER_S3_ADDRESSING: addressing } = values;
  if (addressing === "path" && dialect !== undefined && speaksOss(dialect, hostname)) {
    yield { name: "SCRAPER_S3_ADDRESSING", message: "must not be path: OSS takes the bucket in the host name alone" };
  }
}

/** The pair is whole or absent, serves this machine alone, and is for development and test. */
function* localStoreFaults(
  values: Partial<SettingValues>,
  { isLocal, isDeployed }: EnvironmentKind,
): Generator<SettingsFault> {
  const { SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory, SCRAPER_LOCAL_ARTIFACT_BASE_URL: baseUrl } = values;
  if (isDeployed) {
    for (const name of LOCAL_STORE) {
      if (values[name] !== undefined) {
        yield { name, message: "is for development and test only" };
      }
    }
    return;
  }
  if (directory === undefined && baseUrl !== undefined) {
    yield { name: "SCRAPER_LOCAL_ARTIFACT_DIRECTORY", message: "goes with SCRAPER_LOCAL_ARTIFACT_BASE_URL" };
  }
  if (baseUrl === undefined && directory !== undefined) {
    yield { name: "SCRAPER_LOCAL_ARTIFACT_BASE_URL", message: "goes with SCRAPER_LOCAL_ARTIFACT_DIRECTORY" };
  }
  if (isLocal && baseUrl !== undefined && !isLoopbackHost(new URL(baseUrl).hostname.replace(/^\[|\]$/gu, ""))) {
    yield { name: "SCRAPER_LOCAL_ARTIFACT_BASE_URL", message: "must be a loopback URL" };
  }
}
