import type { RouteSettings } from "./route-settings.ts";
import type { Setting } from "./setting.ts";
import type { HostPort } from "./setting-parsers.ts";
import { findRelationFaults } from "./setting-relations.ts";
import { type Environment, type LogLevel, SETTINGS, type SettingName } from "./setting-table.ts";
import type { SettingsFault, SettingValues } from "./setting-values.ts";
import { toSettings } from "./to-settings.ts";

/** The services that answer other processes. */
export const SERVICE_NAMES = ["intake", "fetching", "artifacts", "callbacks", "retention"] as const;
export type ServiceName = (typeof SERVICE_NAMES)[number];

/** Where bytes are kept. The S3 endpoint has no path; its two keys are secrets. */
export type StoreSettings =
  | { readonly kind: "LOCAL"; readonly directory: string; readonly baseUrl: string }
  | {
      readonly kind: "S3";
      readonly endpoint: string;
      readonly bucket: string;
      readonly accessKeyId: string;
      readonly secretAccessKey: string;
      readonly prefix: string;
      readonly region: string;
      /** OSS: its own header for "do not overwrite", and always the bucket in the host name. */
      readonly dialect: "S3" | "OSS";
      readonly addressing: "PATH" | "VIRTUAL_HOST";
    };

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
    readonly renderSlots: number;
    readonly unlockerAttemptMs: number;
    readonly renderAttemptMs: number;
    /** Both or neither; never outside development and test. */
    readonly developmentEgress: { readonly proxyUrl: string; readonly dnsOverHttpsUrl: string } | null;
  };
  /** What every host and every wait is held to. `isForAllowed`: the host's rate holds for allowed targets too. */
  readonly admission: {
    readonly waitMs: number;
    readonly hostRequestsPerSecond: number;
    readonly hostConcurrency: number;
    readonly hostHoldMsMax: number;
    readonly isForAllowed: boolean;
    readonly stickySessionMs: number;
  };
  readonly routes: RouteSettings;
  readonly proxyHealth: { readonly intervalMs: number };
  /** `runningMax` null means no limit. */
  readonly callers: {
    readonly queuedMax: number;
    readonly runningMax: number | null;
    /** Null means no cap. */
    readonly dailyCapMicros: number | null;
    readonly monthlyCapMicros: number | null;
  };
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
    readonly store: StoreSettings;
    readonly downloadUrlMs: number;
    readonly scrub: { readonly objectsPerMinute: number; readonly bytesPerMinute: number };
  };
  /** `isShared`: answers that nothing makes one caller's own are taken by all callers. */
  readonly cache: { readonly isShared: boolean };
  readonly retention: {
    readonly jobMs: number;
    readonly eventMs: number;
    readonly artifactMs: number;
    readonly evidenceMs: number;
    /** How long an answer may be taken or revalidated after its target last vouched for it. */
    readonly cacheMs: number;
    /** Of each kind of row. */
    readonly purgeRowsPerMinute: number;
    /** Days, fractions included: audit rows are written with it as it is. */
    readonly auditDays: number;
  };
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
  for (const relation of findRelationFaults(values as Partial<SettingValues>)) {
    if (!faulty.has(relation.name)) {
      faults.push(relation);
    }
  }
  if (faults.length > 0) {
    return { ok: false, faults };
  }
  return { ok: true, value: toSettings(values as SettingValues) };
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
