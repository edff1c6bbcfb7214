import { parseSettings, renderSettingsFaults, type Settings } from "../src/settings.ts";

/** What every environment must have. Each `canary` is a secret. */
export const REQUIRED = {
  SCRAPER_ENVIRONMENT: "test",
  SCRAPER_DATABASE_URL: "postgres://user:canary-password@db.internal:5432/scraper",
  SCRAPER_REDIS_URL: "redis://:canary-password@redis.internal:6379",
  SCRAPER_SERVICE_TOKEN: "0123456789abcdef",
  SCRAPER_SECRET_KEY: "ab".repeat(32),
} as const;
/** An environment; an undefined name is absent. */
export type Env = Record<string, string | undefined>;

/** The settings of that environment, whose required ones are filled in. Throws when one can't be used. */
export function parse(env: Env = {}): Settings {
  const parsed = parseSettings({ ...REQUIRED, ...env });
  if (!parsed.ok) {
    throw new Error(renderSettingsFaults(parsed.faults));
  }
  return parsed.value;
}

/** The names that are reported for that environment, in order. */
export function faultyNames(env: Env): readonly string[] {
  const parsed = parseSettings({ ...REQUIRED, ...env });
  return parsed.ok ? [] : parsed.faults.map((fault) => fault.name);
}

/** The four settings of a bucket. */
export const S3 = {
  SCRAPER_S3_ENDPOINT: "https://s3.eu-central-1.example.com",
  SCRAPER_S3_BUCKET: "artifacts.example",
  SCRAPER_S3_ACCESS_KEY_ID: "canary-key-id",
  SCRAPER_S3_SECRET_ACCESS_KEY: "canary-secret",
} as const;
/** Their names. */
export const S3_NAMES = Object.keys(S3) as (keyof typeof S3)[];
/** What production asks for besides. */
export const PRODUCTION = {
  SCRAPER_ENVIRONMENT: "production",
  SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/main",
  ...S3,
} as const;
