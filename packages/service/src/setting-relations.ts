import { findRouteFaults } from "./route-setting-relations.ts";
import { isLoopbackHost, isMetadataHost } from "./setting-parsers.ts";
import type { SettingsFault, SettingValues } from "./setting-values.ts";
import { findStoreFaults } from "./store-setting-relations.ts";

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
  if (isDeployed) yield* callbackLeaseFaults(values);
  yield* findStoreFaults(values, { isLocal, isDeployed });
  yield* findRouteFaults(values, { isLocal, isDeployed });
}

/**
 * A try and its commit should fit into a lease, so that a worker that cannot renew still ends what it began. Statements
 * time out within a quarter of a lease. Leases are renewed, so a short one is slower and not wrong: development and test
 * may have it.
 */
function* callbackLeaseFaults(values: Partial<SettingValues>): Generator<SettingsFault> {
  const { SCRAPER_CALLBACK_TIMEOUT_MS: timeoutMs, SCRAPER_LEASE_SECONDS: leaseSeconds } = values;
  if (timeoutMs !== undefined && leaseSeconds !== undefined && timeoutMs >= leaseSeconds * 750) {
    yield { name: "SCRAPER_CALLBACK_TIMEOUT_MS", message: "must be under three quarters of SCRAPER_LEASE_SECONDS" };
  }
}
