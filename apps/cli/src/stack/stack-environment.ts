import type { PreparedDatabase } from "@keble-scraper/local-servers";
import type { Environment } from "@keble-scraper/service";
import type { CliContext } from "../cli-context.ts";
import type { SampleSite } from "./sample-site.ts";
import type { StackPorts } from "./stack-ports.ts";
import type { StackSecrets } from "./stack-secrets.ts";
import type { StateDirectory } from "./state-directory.ts";

/**
 * The environment of every process of the stack: the user's, with what `up` decides over it. The user's own token, key,
 * store and allow-lists stay; the stack's site and receiver are added to the lists.
 */
export function toStackEnvironment(given: {
  readonly env: CliContext["env"];
  readonly environment: Environment;
  readonly state: Pick<StateDirectory, "root" | "artifacts">;
  readonly secrets: StackSecrets;
  readonly database: PreparedDatabase;
  readonly redisUrl: string;
  readonly ports: StackPorts;
  readonly site: Pick<SampleSite, "originHostPort" | "receiverHostPort">;
}): Readonly<Record<string, string | undefined>> {
  const { env, site, secrets, ports } = given;
  const urls = Object.entries(ports.services).map(
    ([name, port]) => [`SCRAPER_${name.toUpperCase()}_URL`, `http://127.0.0.1:${port}`] as const,
  );
  return {
    ...env,
    SCRAPER_ENVIRONMENT: given.environment,
    SCRAPER_STATE_DIRECTORY: given.state.root,
    SCRAPER_DATABASE_URL: given.database.url,
    SCRAPER_MIGRATION_DATABASE_URL: given.database.migrationUrl,
    SCRAPER_REDIS_URL: given.redisUrl,
    SCRAPER_GATEWAY_PORT: String(ports.gateway),
    SCRAPER_SERVICE_TOKEN: present(env["SCRAPER_SERVICE_TOKEN"]) ?? secrets.serviceToken,
    SCRAPER_SECRET_KEY: present(env["SCRAPER_SECRET_KEY"]) ?? secrets.secretKey,
    SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: joined(env["SCRAPER_DEVELOPMENT_ALLOWED_TARGETS"], site.originHostPort),
    SCRAPER_ALLOWED_CALLBACKS: joined(env["SCRAPER_ALLOWED_CALLBACKS"], site.receiverHostPort),
    ...toLocalStore(env, given.state.artifacts, ports.downloads),
    ...Object.fromEntries(urls),
  };
}

/** The user's own store, or one below the state directory that serves its downloads on a port of its own. */
function toLocalStore(env: CliContext["env"], directory: string, port: number): Record<string, string> {
  const own = ["SCRAPER_LOCAL_ARTIFACT_DIRECTORY", "SCRAPER_LOCAL_ARTIFACT_BASE_URL", "SCRAPER_S3_ENDPOINT"];
  if (own.some((name) => present(env[name]) !== undefined)) return {};
  return {
    SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory,
    SCRAPER_LOCAL_ARTIFACT_BASE_URL: `http://127.0.0.1:${port}`,
  };
}

function joined(given: string | undefined, own: string): string {
  const list = present(given);
  return list === undefined ? own : `${list},${own}`;
}

function present(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text;
}
