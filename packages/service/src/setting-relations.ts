import { findRouteFaults } from "./route-setting-relations.ts";
import { isLoopbackHost, isMetadataHost } from "./setting-parsers.ts";
import type { SettingsFault, SettingValues } from "./setting-values.ts";
import { speaksOss } from "./to-store-settings.ts";

/** Every rule that spans settings. A rule whose sides are not all known is not judged. */
export function* findRelationFaults(values: Partial<SettingValues>): Generator<SettingsFault> {
  const environment = values.SCRAPER_ENVIRONMENT;
  const isLocal = environment === "development" || environment === "test";
  const isDeployed = environment === "staging" || environment === "production";
  const receivers = values.SCRAPER_ALLOWED_CALLBACKS ?? [];
  if (receivers.some((receiver) => isMetadataHost(receiver.host))) {
    yield { name: "SCRAPER_ALLOWED_CALLBACKS", message: "must not list a metadata address" };
  }
  if (isDeployed) {
    if (values.SCRAPER_DEVELOPMENT_ALLOWED_TARGETS !== undefined) {
      yield { name: "SCRAPER_DEVELOPMENT_ALLOWED_TARGETS", message: "is for development and test only" };
    }
    if (receivers.some((receiver) => isLoopbackHost(receiver.host))) {
      yield { name: "SCRAPER_ALLOWED_CALLBACKS", message: "may list loopback in development and test only" };
    }
    if (values.SCRAPER_ARTIFACT_NAMESPACE_OWNER === undefined) {
      yield { name: "SCRAPER_ARTIFACT_NAMESPACE_OWNER", message: "is required in staging and production" };
    }
  }
  yield* callbackLeaseFaults(values, isDeployed);
  yield* s3StoreFaults(values, isDeployed);
  yield* localStoreFaults(values, isLocal, isDeployed);
  yield* findRouteFaults(values, { isLocal, isDeployed });
}

/**
 * A try and its commit should fit into a lease, so that a worker that cannot renew still ends what it began. Statements
 * time out within a quarter of a lease. Leases are renewed, so a short one is slower and not wrong: development and test
 * may have it.
 */
function* callbackLeaseFaults(values: Partial<SettingValues>, isDeployed: boolean): Generator<SettingsFault> {
  const { SCRAPER_CALLBACK_TIMEOUT_MS: timeoutMs, SCRAPER_LEASE_SECONDS: leaseSeconds } = values;
  if (isDeployed && timeoutMs !== undefined && leaseSeconds !== undefined && timeoutMs >= leaseSeconds * 750) {
    yield { name: "SCRAPER_CALLBACK_TIMEOUT_MS", message: "must be under three quarters of SCRAPER_LEASE_SECONDS" };
  }
}

const S3_TUPLE = [
  "SCRAPER_S3_ENDPOINT",
  "SCRAPER_S3_BUCKET",
  "SCRAPER_S3_ACCESS_KEY_ID",
  "SCRAPER_S3_SECRET_ACCESS_KEY",
] as const;

/** The tuple is whole or absent; staging and production have no other store. */
function* s3StoreFaults(values: Partial<SettingValues>, isDeployed: boolean): Generator<SettingsFault> {
  const missing = S3_TUPLE.filter((name) => values[name] === undefined);
  const isAbsent = missing.length === S3_TUPLE.length;
  if (isAbsent && isDeployed) {
    yield { name: "SCRAPER_S3_ENDPOINT", message: "is required in staging and production: they keep artifacts in S3" };
  }
  if (!isAbsent) {
    for (const name of missing) {
      yield { name, message: "goes with the other three of endpoint, bucket, access key id and secret access key" };
    }
    for (const name of ["SCRAPER_LOCAL_ARTIFACT_DIRECTORY", "SCRAPER_LOCAL_ARTIFACT_BASE_URL"] as const) {
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

function* localStoreFaults(
  values: Partial<SettingValues>,
  isLocal: boolean,
  isDeployed: boolean,
): Generator<SettingsFault> {
  const { SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory, SCRAPER_LOCAL_ARTIFACT_BASE_URL: baseUrl } = values;
  if (isDeployed) {
    for (const name of ["SCRAPER_LOCAL_ARTIFACT_DIRECTORY", "SCRAPER_LOCAL_ARTIFACT_BASE_URL"] as const) {
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
