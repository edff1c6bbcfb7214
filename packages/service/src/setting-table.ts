import { ADMISSION_SETTINGS } from "./admission-setting-table.ts";
import { ARTIFACT_SETTINGS } from "./artifact-setting-table.ts";
import { FETCHING_SETTINGS } from "./fetching-setting-table.ts";
import { ROUTE_SETTINGS } from "./route-setting-table.ts";
import { choice, count, days, milliseconds, number, text } from "./setting.ts";
import { parseHostPorts, parsePath, parseSecretKey, tokenParser, urlParser } from "./setting-parsers.ts";

/** What a deployment is. Only development and test may reach private targets and use the local store. */
export const ENVIRONMENTS = ["development", "test", "staging", "production"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error", "fatal", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const LEASES = ["worker-fetch", "worker-render", "worker-callbacks", "worker-maintenance"] as const;
const SERVICES = ["gateway", "intake", "fetching", "artifacts", "callbacks", "retention"] as const;
const HTTP_URL = urlParser(["http", "https"], { bare: true });
const POSTGRES_URL = urlParser(["postgres", "postgresql"]);

function serviceUrl(service: string, port: number) {
  return text({
    kind: "url",
    expects: "an http or https URL without credentials or query",
    default: { text: `http://127.0.0.1:${port}` },
    parse: HTTP_URL,
    help: `Where the ${service} service answers the other processes.`,
    readBy: [...SERVICES, "worker-fetch", "worker-render", "worker-callbacks"],
  });
}

/**
 * Every setting there is, once: parser, defaults, bounds and the settings page derive from this list. Names end in their
 * unit. Seconds and days admit fractions, so that a test may run a deployment fast.
 */
export const SETTINGS = {
  SCRAPER_ENVIRONMENT: choice({
    values: ENVIRONMENTS,
    default: "required",
    absentHelp: "required; `up` takes development",
    help: "What this deployment is. Private targets, the local store and unlisted owners are for development and test only.",
    readBy: "all",
  }),
  SCRAPER_LOG_LEVEL: choice({
    values: LOG_LEVELS,
    default: "info",
    help: "The least severe level that is written.",
    readBy: "all",
  }),
  SCRAPER_STATE_DIRECTORY: text({
    kind: "path",
    expects: "a path",
    default: { text: ".keble" },
    parse: parsePath,
    help: "Where the local stack keeps its databases, keys and files; spooled bodies go below it.",
    readBy: ["up", "worker-fetch", "worker-render"],
  }),

  SCRAPER_DATABASE_URL: text({
    kind: "url",
    expects: "a postgres URL",
    default: "required",
    absentHelp: "required; `up` starts its own Postgres",
    secret: true,
    parse: POSTGRES_URL,
    help: "Postgres 15 or newer, as the role the services and workers use.",
    readBy: "all",
  }),
  SCRAPER_MIGRATION_DATABASE_URL: text({
    kind: "url",
    expects: "a postgres URL",
    default: "none",
    absentHelp: "SCRAPER_DATABASE_URL",
    secret: true,
    parse: POSTGRES_URL,
    help: "The same database as the role that owns the schema. When both roles are one, only triggers protect the ledger and the audit.",
    readBy: ["migrate", "up"],
  }),
  SCRAPER_REDIS_URL: text({
    kind: "url",
    expects: "a redis or rediss URL",
    default: "required",
    absentHelp: "required; `up` starts its own Redis",
    secret: true,
    parse: urlParser(["redis", "rediss"]),
    help: "The bell and the hints. Losing it costs latency, nothing else.",
    readBy: "all",
  }),
  SCRAPER_REDIS_PREFIX: text({
    kind: "text",
    expects: "1 to 64 of A-Z a-z 0-9 . _ -",
    default: { text: "keble" },
    parse: (value) => (/^[A-Za-z0-9._-]{1,64}$/u.test(value) ? value : undefined),
    help: "The namespace of this deployment's keys in Redis.",
    readBy: "all",
  }),

  SCRAPER_GATEWAY_PORT: number({
    default: 8787,
    min: 0,
    max: 65_535,
    whole: true,
    unit: "port",
    help: "The public port. 0 takes any free one.",
    readBy: ["gateway", "up"],
  }),
  SCRAPER_LISTEN_HOST: text({
    kind: "text",
    expects: "an address or host name",
    default: "none",
    absentHelp: "127.0.0.1 in development and test, 0.0.0.0 elsewhere",
    parse: (value) => (/^[A-Za-z0-9.:_-]{1,253}$/u.test(value) ? value : undefined),
    help: "The address that services listen on.",
    readBy: [...SERVICES, "up"],
  }),
  SCRAPER_INTERNAL_PORT: number({
    default: "none",
    absentHelp: "the port of the service's default URL",
    min: 0,
    max: 65_535,
    whole: true,
    unit: "port",
    help: "The port on which a service answers the other processes. 0 takes any free one.",
    readBy: SERVICES,
  }),
  SCRAPER_INTAKE_URL: serviceUrl("intake", 8791),
  SCRAPER_FETCHING_URL: serviceUrl("fetching", 8792),
  SCRAPER_ARTIFACTS_URL: serviceUrl("artifacts", 8793),
  SCRAPER_CALLBACKS_URL: serviceUrl("callbacks", 8794),
  SCRAPER_RETENTION_URL: serviceUrl("retention", 8795),
  SCRAPER_SERVICE_TOKEN: text({
    kind: "token",
    expects: "16 to 512 visible ASCII characters",
    default: "required",
    absentHelp: "required; `up` makes one",
    secret: true,
    parse: tokenParser(16, 512),
    help: "What the processes of one deployment show each other.",
    readBy: "all",
  }),
  SCRAPER_SECRET_KEY: text({
    kind: "key",
    expects: "32 bytes as 64 hexadecimal digits or as base64",
    default: "required",
    absentHelp: "required; `up` makes one",
    secret: true,
    parse: parseSecretKey,
    help: "The key that callback secrets are encrypted with at rest, and that signs the local store's download links. Losing it loses the secrets.",
    readBy: "all",
  }),

  SCRAPER_LEASE_SECONDS: number({
    default: 60,
    min: 4,
    max: 3_600,
    unit: "seconds",
    help: "How long a worker holds what it claimed without renewing it. Renewed every quarter.",
    readBy: LEASES,
  }),
  SCRAPER_POLL_INTERVAL_SECONDS: number({
    default: 5,
    min: 0.05,
    max: 600,
    unit: "seconds",
    help: "How often a worker looks for work when no bell rings, give or take a tenth.",
    readBy: LEASES,
  }),
  SCRAPER_MAINTENANCE_INTERVAL_SECONDS: number({
    default: 15,
    min: 0.05,
    max: 600,
    unit: "seconds",
    help: "How often expired leases are recovered and due work is announced.",
    readBy: ["worker-maintenance", "beat"],
  }),
  SCRAPER_RETRY_BASE_MS: milliseconds({
    default: 500,
    max: 3_600_000,
    help: "The first ceiling of a job's random wait before its next attempt; doubled each time.",
    readBy: ["fetching", "worker-fetch", "worker-render", "worker-maintenance"],
  }),
  SCRAPER_RETRY_CEILING_MS: milliseconds({
    default: 60_000,
    max: 86_400_000,
    help: "The highest ceiling of that wait.",
    readBy: ["fetching", "worker-fetch", "worker-render", "worker-maintenance"],
  }),
  SCRAPER_ABORT_GRACE_MS: milliseconds({
    default: 2_000,
    min: 0,
    max: 60_000,
    help: "How long after its deadline a running job may still settle.",
    readBy: ["fetching", "worker-fetch", "worker-render", "worker-maintenance"],
  }),
  SCRAPER_DRAIN_GRACE_SECONDS: number({
    default: 20,
    min: 0,
    max: 600,
    unit: "seconds",
    help: "How long work in flight may go on after SIGTERM.",
    readBy: "all",
  }),
  SCRAPER_PUBLISH_CONCURRENCY: count({
    default: 16,
    max: 256,
    unit: "calls",
    help: "How many bells maintenance rings at once.",
    readBy: ["worker-maintenance"],
  }),

  ...FETCHING_SETTINGS,
  ...ADMISSION_SETTINGS,
  ...ROUTE_SETTINGS,

  SCRAPER_CALLER_QUEUED_MAX: count({
    default: 100_000,
    max: 100_000_000,
    unit: "jobs",
    help: "The most jobs of one caller that may wait; more are answered 429.",
    readBy: ["intake"],
  }),
  SCRAPER_CALLER_RUNNING_MAX: count({
    default: "none",
    absentHelp: "no limit",
    max: 1_000_000,
    unit: "jobs",
    help: "The most jobs of one caller that run at once, over all workers.",
    readBy: ["worker-fetch", "worker-render"],
  }),

  SCRAPER_CALLBACK_SLOTS: count({
    default: 32,
    max: 1_000,
    unit: "deliveries",
    help: "How many callbacks one worker sends at once.",
    readBy: ["worker-callbacks"],
  }),
  SCRAPER_CALLBACK_TIMEOUT_MS: milliseconds({
    default: 15_000,
    min: 100,
    max: 60_000,
    help: "The limit of one callback's try, when its endpoint names none.",
    readBy: ["callbacks", "worker-callbacks"],
  }),
  SCRAPER_CALLBACK_RETRY_BASE_MS: milliseconds({
    default: 5_000,
    max: 86_400_000,
    help: "The first ceiling of a delivery's random wait before its next try; five times as long each time.",
    readBy: ["callbacks", "worker-callbacks", "worker-maintenance"],
  }),
  SCRAPER_CALLBACK_RETRY_CEILING_MS: milliseconds({
    default: 36_000_000,
    max: 86_400_000,
    help: "The highest ceiling of that wait.",
    readBy: ["callbacks", "worker-callbacks", "worker-maintenance"],
  }),
  SCRAPER_CALLBACK_ATTEMPT_BUDGET: count({
    default: 10,
    max: 20,
    unit: "tries",
    help: "How often a delivery is tried, when its endpoint names no number.",
    readBy: ["callbacks", "worker-callbacks"],
  }),
  SCRAPER_ALLOWED_CALLBACKS: text({
    kind: "list",
    expects: "host:port pairs in their plain spelling, separated by commas, at most 64, no metadata address",
    default: "none",
    parse: parseHostPorts,
    help: "Private receivers that callbacks may go to, by exact host and port. Loopback only in development and test.",
    readBy: ["callbacks", "worker-callbacks"],
  }),

  ...ARTIFACT_SETTINGS,

  SCRAPER_JOB_RETENTION_DAYS: days({
    default: 90,
    help: "How long an ended job and its attempts are kept.",
    readBy: [
      "intake",
      "fetching",
      "callbacks",
      "worker-fetch",
      "worker-render",
      "worker-callbacks",
      "worker-maintenance",
    ],
  }),
  SCRAPER_EVENT_RETENTION_DAYS: days({
    default: 30,
    help: "How long a delivered event is kept.",
    readBy: ["callbacks", "worker-callbacks", "worker-maintenance"],
  }),
  SCRAPER_ARTIFACT_RETENTION_DAYS: days({
    default: 90,
    help: "How long an ended job holds its bytes, unless it is purged first.",
    readBy: ["fetching", "worker-fetch", "worker-render", "worker-maintenance"],
  }),
  SCRAPER_EVIDENCE_RETENTION_DAYS: days({
    default: 7,
    help: "How long the refused body of a blocked or failed attempt is kept.",
    readBy: ["worker-fetch", "worker-render", "worker-maintenance"],
  }),
  SCRAPER_PURGE_ROWS_PER_MINUTE: count({
    default: 1_000,
    max: 10_000_000,
    unit: "rows",
    help: "How many jobs, and rows of each other kind, that have expired are deleted in a minute, over all maintenance workers.",
    readBy: ["worker-maintenance", "retention"],
  }),
  SCRAPER_AUDIT_RETENTION_DAYS: days({
    default: 400,
    help: "How long an audit row is kept from the moment it is written; `keys` reads it too.",
    readBy: [
      "gateway",
      "intake",
      "fetching",
      "artifacts",
      "callbacks",
      "worker-fetch",
      "worker-render",
      "worker-callbacks",
      "worker-proxy-health",
      "worker-maintenance",
      "retention",
      "up",
    ],
  }),
} as const;

export type SettingName = keyof typeof SETTINGS;
