import { join } from "node:path";
import type { Setting } from "./setting.ts";
import { type HostPort, isLoopbackHost, isMetadataHost } from "./setting-parsers.ts";
import { type Environment, type LogLevel, SETTINGS, type SettingName } from "./setting-table.ts";

/** The services that answer other processes. */
export const SERVICE_NAMES = ["intake", "fetching", "artifacts", "callbacks", "retention"] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** What is wrong with one setting. Neither field shows its value. */
export type SettingsFault = { readonly name: SettingName; readonly message: string };

/** All settings, parsed and nested. An app takes a `Pick` of it. Durations are milliseconds. */
export type Settings = {
  readonly environment: Environment;
  readonly logLevel: LogLevel;
  readonly stateDirectory: string;
  /** `migrationUrl` equals `url` when only one role is configured. */
  readonly database: { readonly url: string; readonly migrationUrl: string };
  /** `prefix` carries a hash tag, so that all keys of a deployment stay in one slot of a cluster. */
  readonly redis: { readonly url: string; readonly prefix: string };
  readonly gateway: { readonly host: string; readonly port: number };
  readonly internal: {
    readonly host: string;
    /** The port each service listens on; 0 means any. */
    readonly ports: Readonly<Record<ServiceName, number>>;
    readonly urls: Readonly<Record<ServiceName, string>>;
    readonly serviceToken: string;
  };
  /** 32 bytes. */
  readonly secretKey: Buffer;
  readonly timings: {
    readonly leaseMs: number;
    readonly pollMs: number;
    readonly maintenanceMs: number;
    readonly abortGraceMs: number;
    readonly drainGraceMs: number;
  };
  readonly retry: { readonly baseMs: number; readonly ceilingMs: number };
  readonly publish: { readonly concurrency: number };
  readonly fetching: {
    readonly slots: number;
    readonly spoolDirectory: string;
    readonly attemptMs: number;
    readonly connectTimeoutMs: number;
    readonly responseTimeoutMs: number;
    readonly bodyIdleTimeoutMs: number;
    readonly bodyBytesMax: number;
    /** The operator's contact included. */
    readonly userAgent: string;
    /** Empty outside development and test. */
    readonly allowedTargets: readonly HostPort[];
  };
  /** `runningMax` null means no limit. */
  readonly callers: { readonly queuedMax: number; readonly runningMax: number | null };
  readonly callbacks: {
    readonly slots: number;
    readonly timeoutMs: number;
    readonly connectTimeoutMs: number;
    readonly retryBaseMs: number;
    readonly retryCeilingMs: number;
    readonly attemptBudget: number;
    readonly userAgent: string;
    readonly allowedReceivers: readonly HostPort[];
  };
  readonly artifacts: {
    readonly namespaceOwner: string;
    readonly store: { readonly kind: "LOCAL"; readonly directory: string; readonly baseUrl: string };
    readonly downloadUrlMs: number;
  };
  readonly retention: { readonly jobMs: number; readonly eventMs: number; readonly artifactMs: number };
};

type Values = {
  readonly [N in SettingName]: (typeof SETTINGS)[N] extends Setting<infer T, infer A>
    ? [A] extends ["none"]
      ? T | undefined
      : T
    : never;
};

/** What `parseSettings` answers: all settings, or every fault at once. */
export type ParsedSettings =
  | { readonly ok: true; readonly value: Settings }
  | { readonly ok: false; readonly faults: readonly SettingsFault[] };

/**
 * Reads all settings from an environment. Pure; whitespace-only is absent; all faults are reported at once, by name,
 * never with a value. `base` stands in for what the environment lacks (the local stack's own servers and keys);
 * `environmentDefault` is for `up` alone.
 */
export function parseSettings(
  env: Readonly<Record<string, string | undefined>>,
  options: {
    readonly environmentDefault?: "development";
    readonly base?: Readonly<Partial<Record<SettingName, string>>>;
  } = {},
): ParsedSettings {
  const base: Partial<Record<SettingName, string>> = {
    ...(options.environmentDefault ? { SCRAPER_ENVIRONMENT: options.environmentDefault } : {}),
    ...options.base,
  };
  const faults: SettingsFault[] = [];
  const values: Partial<Record<SettingName, unknown>> = {};
  const faulty = new Set<SettingName>();
  for (const name of SETTING_NAMES) {
    const read = readOne(SETTINGS[name], present(env[name]) ?? present(base[name]));
    if (typeof read === "object" && "fault" in read) {
      faults.push({ name, message: read.fault });
      faulty.add(name);
    } else {
      values[name] = read.value;
    }
  }
  // A relation is judged when both its sides are readable; a faulty side has been reported already.
  for (const relation of relationFaults(values as Partial<Values>)) {
    if (!faulty.has(relation.name)) {
      faults.push(relation);
    }
  }
  if (faults.length > 0) {
    return { ok: false, faults };
  }
  return { ok: true, value: toSettings(values as Values) };
}

/** The names in an environment that look like ours and are not in the list: spelling mistakes, or a newer release's. */
export function listUnknownSettings(env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.keys(env)
    .filter((name) => /^SCRAPER_[A-Z0-9_]{1,64}$/u.test(name) && !Object.hasOwn(SETTINGS, name))
    .toSorted();
}

/** The faults as lines for a terminal, one a setting. */
export function renderSettingsFaults(faults: readonly SettingsFault[]): string {
  return faults.map((fault) => `${fault.name}: ${fault.message}`).join("\n");
}

const SETTING_NAMES = Object.keys(SETTINGS) as SettingName[];
const DAY_MS = 86_400_000;

function present(text: string | undefined): string | undefined {
  const trimmed = text?.trim();
  return trimmed === "" ? undefined : trimmed;
}

function readOne(setting: Setting<unknown>, text: string | undefined): { value: unknown } | { fault: string } {
  const given = text ?? (typeof setting.absent === "object" ? setting.absent.text : undefined);
  if (given === undefined) {
    return setting.absent === "required" ? { fault: `is required: ${setting.expects}` } : { value: undefined };
  }
  const value = setting.parse(given);
  return value === undefined ? { fault: `must be ${setting.expects}` } : { value };
}

/** Every rule that spans settings. */
function* relationFaults(values: Partial<Values>): Generator<SettingsFault> {
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
  yield* localStoreFaults(values, isLocal, isDeployed);
}

/**
 * A try and its commit should fit into a lease, so that a worker that cannot renew still ends what it began. Statements
 * time out within a quarter of a lease. Leases are renewed, so a short one is slower and not wrong: development and test
 * may have it.
 */
function* callbackLeaseFaults(values: Partial<Values>, isDeployed: boolean): Generator<SettingsFault> {
  const { SCRAPER_CALLBACK_TIMEOUT_MS: timeoutMs, SCRAPER_LEASE_SECONDS: leaseSeconds } = values;
  if (isDeployed && timeoutMs !== undefined && leaseSeconds !== undefined && timeoutMs >= leaseSeconds * 750) {
    yield { name: "SCRAPER_CALLBACK_TIMEOUT_MS", message: "must be under three quarters of SCRAPER_LEASE_SECONDS" };
  }
}

function* localStoreFaults(values: Partial<Values>, isLocal: boolean, isDeployed: boolean): Generator<SettingsFault> {
  const { SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory, SCRAPER_LOCAL_ARTIFACT_BASE_URL: baseUrl } = values;
  if (isDeployed) {
    for (const name of ["SCRAPER_LOCAL_ARTIFACT_DIRECTORY", "SCRAPER_LOCAL_ARTIFACT_BASE_URL"] as const) {
      if (values[name] !== undefined) {
        yield { name, message: "is for development and test only" };
      }
    }
    if (directory === undefined && baseUrl === undefined) {
      yield {
        name: "SCRAPER_LOCAL_ARTIFACT_DIRECTORY",
        message: "no artifact store is configured, and this release has only the local one, for development and test",
      };
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

function toSettings(v: Values): Settings {
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
    },
    callers: { queuedMax: v.SCRAPER_CALLER_QUEUED_MAX, runningMax: v.SCRAPER_CALLER_RUNNING_MAX ?? null },
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
      store: localStore(v),
      downloadUrlMs: v.SCRAPER_DOWNLOAD_URL_SECONDS * 1_000,
    },
    retention: {
      jobMs: Math.round(v.SCRAPER_JOB_RETENTION_DAYS * DAY_MS),
      eventMs: Math.round(v.SCRAPER_EVENT_RETENTION_DAYS * DAY_MS),
      artifactMs: Math.round(v.SCRAPER_ARTIFACT_RETENTION_DAYS * DAY_MS),
    },
  };
}

/** Absent, the local store lies under the state directory and answers at the artifacts service. */
function localStore(v: Values): Settings["artifacts"]["store"] {
  return {
    kind: "LOCAL",
    directory: v.SCRAPER_LOCAL_ARTIFACT_DIRECTORY ?? join(v.SCRAPER_STATE_DIRECTORY, "artifacts"),
    baseUrl: v.SCRAPER_LOCAL_ARTIFACT_BASE_URL ?? `${v.SCRAPER_ARTIFACTS_URL}/local-artifacts`,
  };
}

function derivedOwner(v: Values): string {
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
