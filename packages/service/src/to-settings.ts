import { join } from "node:path";
import { SETTINGS } from "./setting-table.ts";
import type { SettingValues } from "./setting-values.ts";
import { toRouteSettings } from "./to-route-settings.ts";
import { toStoreSettings } from "./to-store-settings.ts";
import type { ServiceName, Settings } from "./settings.ts";

const DAY_MS = 86_400_000;

/** Nests parsed settings, in milliseconds, with what is derived from others. */
export function toSettings(v: SettingValues): Settings {
  const isLocal = v.SCRAPER_ENVIRONMENT === "development" || v.SCRAPER_ENVIRONMENT === "test";
  const host = v.SCRAPER_LISTEN_HOST ?? (isLocal ? "127.0.0.1" : "0.0.0.0");
  const userAgent =
    v.SCRAPER_CONTACT === undefined ? v.SCRAPER_USER_AGENT : `${v.SCRAPER_USER_AGENT} (+${v.SCRAPER_CONTACT})`;
  const urls: Record<ServiceName, string> = {
    intake: v.SCRAPER_INTAKE_URL,
    fetching: v.SCRAPER_FETCHING_URL,
    artifacts: v.SCRAPER_ARTIFACTS_URL,
    callbacks: v.SCRAPER_CALLBACKS_URL,
    retention: v.SCRAPER_RETENTION_URL,
  };
  const port = v.SCRAPER_INTERNAL_PORT;
  return {
    environment: v.SCRAPER_ENVIRONMENT,
    logLevel: v.SCRAPER_LOG_LEVEL,
    stateDirectory: v.SCRAPER_STATE_DIRECTORY,
    database: {
      url: v.SCRAPER_DATABASE_URL,
      migrationUrl: v.SCRAPER_MIGRATION_DATABASE_URL ?? v.SCRAPER_DATABASE_URL,
    },
    redis: { url: v.SCRAPER_REDIS_URL, prefix: `{${v.SCRAPER_REDIS_PREFIX}}` },
    gateway: { host, port: v.SCRAPER_GATEWAY_PORT },
    internal: {
      host,
      ports: {
        intake: port ?? defaultPort("SCRAPER_INTAKE_URL"),
        fetching: port ?? defaultPort("SCRAPER_FETCHING_URL"),
        artifacts: port ?? defaultPort("SCRAPER_ARTIFACTS_URL"),
        callbacks: port ?? defaultPort("SCRAPER_CALLBACKS_URL"),
        retention: port ?? defaultPort("SCRAPER_RETENTION_URL"),
      },
      urls,
      serviceToken: v.SCRAPER_SERVICE_TOKEN,
    },
    secretKey: v.SCRAPER_SECRET_KEY,
    timings: {
      leaseMs: v.SCRAPER_LEASE_SECONDS * 1_000,
      pollMs: v.SCRAPER_POLL_INTERVAL_SECONDS * 1_000,
      maintenanceMs: v.SCRAPER_MAINTENANCE_INTERVAL_SECONDS * 1_000,
      abortGraceMs: v.SCRAPER_ABORT_GRACE_MS,
      drainGraceMs: v.SCRAPER_DRAIN_GRACE_SECONDS * 1_000,
    },
    retry: { baseMs: v.SCRAPER_RETRY_BASE_MS, ceilingMs: v.SCRAPER_RETRY_CEILING_MS },
    publish: { concurrency: v.SCRAPER_PUBLISH_CONCURRENCY },
    fetching: {
      slots: v.SCRAPER_FETCH_SLOTS,
      spoolDirectory: v.SCRAPER_SPOOL_DIRECTORY ?? join(v.SCRAPER_STATE_DIRECTORY, "spool"),
      attemptMs: v.SCRAPER_HTTP_ATTEMPT_SECONDS * 1_000,
      connectTimeoutMs: v.SCRAPER_CONNECT_TIMEOUT_MS,
      responseTimeoutMs: v.SCRAPER_RESPONSE_TIMEOUT_MS,
      bodyIdleTimeoutMs: v.SCRAPER_BODY_IDLE_TIMEOUT_MS,
      bodyBytesMax: v.SCRAPER_BODY_BYTES_MAX,
      userAgent,
      allowedTargets: v.SCRAPER_DEVELOPMENT_ALLOWED_TARGETS ?? [],
      renderSlots: v.SCRAPER_RENDER_SLOTS,
      unlockerAttemptMs: v.SCRAPER_UNLOCKER_ATTEMPT_SECONDS * 1_000,
      renderAttemptMs: v.SCRAPER_RENDER_ATTEMPT_SECONDS * 1_000,
      developmentEgress: developmentEgress(v),
    },
    admission: {
      waitMs: v.SCRAPER_ADMISSION_WAIT_MS,
      hostRequestsPerSecond: v.SCRAPER_HOST_REQUESTS_PER_SECOND,
      hostConcurrency: v.SCRAPER_HOST_CONCURRENCY,
      hostHoldMsMax: v.SCRAPER_HOST_HOLD_SECONDS_MAX * 1_000,
      isForAllowed: v.SCRAPER_HOST_POLICY_FOR_ALLOWED === "on",
      stickySessionMs: v.SCRAPER_STICKY_SESSION_SECONDS * 1_000,
    },
    routes: toRouteSettings(v),
    proxyHealth: { intervalMs: v.SCRAPER_PROXY_HEALTH_INTERVAL_SECONDS * 1_000 },
    callers: {
      queuedMax: v.SCRAPER_CALLER_QUEUED_MAX,
      runningMax: v.SCRAPER_CALLER_RUNNING_MAX ?? null,
      dailyCapMicros: v.SCRAPER_CALLER_DAILY_CAP_MICROS ?? null,
      monthlyCapMicros: v.SCRAPER_CALLER_MONTHLY_CAP_MICROS ?? null,
    },
    callbacks: {
      slots: v.SCRAPER_CALLBACK_SLOTS,
      timeoutMs: v.SCRAPER_CALLBACK_TIMEOUT_MS,
      connectTimeoutMs: v.SCRAPER_CONNECT_TIMEOUT_MS,
      retryBaseMs: v.SCRAPER_CALLBACK_RETRY_BASE_MS,
      retryCeilingMs: v.SCRAPER_CALLBACK_RETRY_CEILING_MS,
      attemptBudget: v.SCRAPER_CALLBACK_ATTEMPT_BUDGET,
      userAgent,
      allowedReceivers: v.SCRAPER_ALLOWED_CALLBACKS ?? [],
    },
    artifacts: {
      namespaceOwner: v.SCRAPER_ARTIFACT_NAMESPACE_OWNER ?? derivedOwner(v),
      store: toStoreSettings(v),
      downloadUrlMs: v.SCRAPER_DOWNLOAD_URL_SECONDS * 1_000,
      scrub: {
        objectsPerMinute: v.SCRAPER_SCRUB_OBJECTS_PER_MINUTE,
        bytesPerMinute: v.SCRAPER_SCRUB_BYTES_PER_MINUTE,
      },
    },
    cache: { isShared: v.SCRAPER_CACHE_SHARED === "on" },
    retention: {
      jobMs: Math.round(v.SCRAPER_JOB_RETENTION_DAYS * DAY_MS),
      eventMs: Math.round(v.SCRAPER_EVENT_RETENTION_DAYS * DAY_MS),
      artifactMs: Math.round(v.SCRAPER_ARTIFACT_RETENTION_DAYS * DAY_MS),
      evidenceMs: Math.round(v.SCRAPER_EVIDENCE_RETENTION_DAYS * DAY_MS),
      cacheMs: Math.round(v.SCRAPER_CACHE_RETENTION_DAYS * DAY_MS),
      purgeRowsPerMinute: v.SCRAPER_PURGE_ROWS_PER_MINUTE,
      auditDays: v.SCRAPER_AUDIT_RETENTION_DAYS,
    },
  };
}

/** One without the other is a fault that was reported before. */
function developmentEgress(v: SettingValues): Settings["fetching"]["developmentEgress"] {
  const { SCRAPER_DEVELOPMENT_HTTP_PROXY_URL: proxyUrl, SCRAPER_DEVELOPMENT_DNS_OVER_HTTPS_URL: dnsOverHttpsUrl } = v;
  return proxyUrl === undefined || dnsOverHttpsUrl === undefined ? null : { proxyUrl, dnsOverHttpsUrl };
}

function derivedOwner(v: SettingValues): string {
  const database = new URL(v.SCRAPER_DATABASE_URL).pathname.slice(1).replace(/[^A-Za-z0-9._-]/gu, "-");
  return `${v.SCRAPER_ENVIRONMENT}/${database === "" ? "postgres" : database}`;
}

function defaultPort(
  name:
    | "SCRAPER_INTAKE_URL"
    | "SCRAPER_FETCHING_URL"
    | "SCRAPER_ARTIFACTS_URL"
    | "SCRAPER_CALLBACKS_URL"
    | "SCRAPER_RETENTION_URL",
): number {
  return Number(new URL(SETTINGS[name].absent.text).port);
}
