import { isPortFree, findFreePort } from "@keble-scraper/local-servers";
import { SERVICE_NAMES, type ServiceName, type Settings } from "@keble-scraper/service";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings } from "../read-settings.ts";
import { createGatewayClient } from "../stack/gateway-client.ts";
import { loadCredentials } from "../stack/load-credentials.ts";
import { runDemo } from "../stack/run-demo.ts";
import { type SampleSite, startSampleSite } from "../stack/sample-site.ts";
import { loadStackSecrets, type StackSecrets } from "../stack/stack-secrets.ts";
import { type LocalStack, openLocalStack } from "../stack/local-stack.ts";
import { planStack, type ProcessMode, type ServicePorts } from "../stack/stack-plan.ts";
import { openDatabaseServer, openRedisServer } from "../stack/stack-servers.ts";
import { openStateDirectory, readStateFile, type StateDirectory, writeStateFile } from "../stack/state-directory.ts";
import { takeStateLock } from "../stack/state-lock.ts";
import { untilAborted } from "../until-aborted.ts";
import { migrateDatabase } from "./migrate.ts";

/** The line that says that everything answers. */
export const UP_LINE = "Keble Scraper is up";

type UpOptions = { readonly mode: ProcessMode; readonly fetchWorkers: number; readonly demo: "RUN" | "SKIP" };

/**
 * `keble-scraper up`: everything on one machine, with all its state under SCRAPER_STATE_DIRECTORY. Returns when it was
 * told to stop and everything it started has ended.
 */
export async function runUp(context: CliContext, options: UpOptions): Promise<void> {
  const wanted = checkSettings(context);
  const state = openStateDirectory(wanted.stateDirectory);
  const unlock = takeStateLock(state.lock);
  const stack = await openLocalStack(context, state, wanted.timings.drainGraceMs);
  const starting = start(context, options, { wanted, state, stack });
  try {
    // A stop need not wait for the start: stopping the stack ends what is under way.
    await Promise.race([starting, untilAborted(context.stop)]);
    await untilAborted(context.stop);
    context.print("Stopping; one more Ctrl-C ends everything at once");
  } finally {
    await stack.stop();
    await starting.catch(() => undefined);
    unlock();
  }
}

async function start(
  context: CliContext,
  options: UpOptions,
  parts: { wanted: Settings; state: StateDirectory; stack: LocalStack },
): Promise<void> {
  const { wanted, state, stack } = parts;
  const secrets = loadStackSecrets(state);
  const gatewayPort = await chooseGatewayPort(wanted);
  const site = await openSampleSite(state);
  stack.onStop(() => site.close());

  const database = await stack.step("Postgres", () => openDatabaseServer(stack, context, wanted, secrets));
  const redisUrl = await stack.step("Redis", () => openRedisServer(stack, context));
  await stack.step("Migrations", () => migrateDatabase({ migrationUrl: database.migrationUrl, appUrl: database.url }));

  const { downloads, ...ports } = await choosePorts();
  const env = stackEnvironment(context, {
    wanted,
    state,
    secrets,
    database,
    redisUrl,
    gatewayPort,
    ports,
    downloads,
    site,
  });
  const plan = planStack({ mode: options.mode, fetchWorkers: options.fetchWorkers, ports });
  await stack.step(`Services and workers (${plan.length} processes)`, () => stack.startProcesses(plan, env));

  const gatewayUrl = `http://127.0.0.1:${gatewayPort}`;
  const gateway = createGatewayClient(gatewayUrl);
  const credentials = await stack.step("Keys", () =>
    loadCredentials({ state, gateway, gatewayUrl, databaseUrl: database.url }),
  );
  if (options.demo === "RUN") {
    await runDemo({ state, gateway, credentials, site, print: context.print, stop: context.stop });
  }
  context.print(
    [
      "",
      `${UP_LINE} at ${gatewayUrl} (state and logs in ${state.root})`,
      `  service key   ${credentials.serviceKey}`,
      `  operator key  ${credentials.operatorKey}`,
      "Try it:",
      `  curl -sS ${gatewayUrl}/v1/jobs -H 'authorization: Bearer ${credentials.serviceKey}' -H 'content-type: application/json' -H 'prefer: wait=30' -d '{"target":{"url":"${site.originUrl}/"}}'`,
      "Ctrl-C stops everything.",
    ].join("\n"),
  );
  context.ready();
}

/** Parses all settings before anything is started; the servers that `up` starts itself are stood in for. */
function checkSettings(context: CliContext): Settings {
  const settings = readSettings(context, {
    environmentDefault: "development",
    base: {
      SCRAPER_DATABASE_URL: "postgres://unread.invalid/keble_scraper",
      SCRAPER_REDIS_URL: "redis://unread.invalid",
      SCRAPER_SERVICE_TOKEN: "this-one-is-made-by-up",
      SCRAPER_SECRET_KEY: "0".repeat(64),
    },
  });
  if (settings.environment === "development" || settings.environment === "test") return settings;
  throw new CliError(
    "USAGE",
    `SCRAPER_ENVIRONMENT: \`up\` is for development and test, not for ${settings.environment}. Run the processes one by one there.`,
  );
}

/** What every process of the stack gets: the user's environment, with what `up` decides over it. */
function stackEnvironment(
  context: CliContext,
  given: {
    wanted: Settings;
    state: StateDirectory;
    secrets: StackSecrets;
    database: { url: string; migrationUrl: string };
    redisUrl: string;
    gatewayPort: number;
    ports: ServicePorts;
    downloads: number;
    site: SampleSite;
  },
): Record<string, string | undefined> {
  const { env } = context;
  const { site, secrets } = given;
  const urls = Object.entries(given.ports).map(([name, port]) => [
    `SCRAPER_${name.toUpperCase()}_URL`,
    `http://127.0.0.1:${port}`,
  ]);
  return {
    ...env,
    SCRAPER_ENVIRONMENT: given.wanted.environment,
    SCRAPER_STATE_DIRECTORY: given.state.root,
    SCRAPER_DATABASE_URL: given.database.url,
    SCRAPER_MIGRATION_DATABASE_URL: given.database.migrationUrl,
    SCRAPER_REDIS_URL: given.redisUrl,
    SCRAPER_GATEWAY_PORT: String(given.gatewayPort),
    SCRAPER_SERVICE_TOKEN: present(env["SCRAPER_SERVICE_TOKEN"]) ?? secrets.serviceToken,
    SCRAPER_SECRET_KEY: present(env["SCRAPER_SECRET_KEY"]) ?? secrets.secretKey,
    SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: joined(env["SCRAPER_DEVELOPMENT_ALLOWED_TARGETS"], site.originHostPort),
    SCRAPER_ALLOWED_CALLBACKS: joined(env["SCRAPER_ALLOWED_CALLBACKS"], site.receiverHostPort),
    ...localStore(env, given),
    ...(Object.fromEntries(urls) as Record<string, string>),
  };
}

async function chooseGatewayPort({ gateway }: Settings): Promise<number> {
  if (gateway.port === 0) return findFreePort();
  if (await isPortFree(gateway.port)) return gateway.port;
  throw new CliError(
    "PORT_TAKEN",
    `Port ${gateway.port} is taken by another program. Stop that one, or set SCRAPER_GATEWAY_PORT (0 takes any free port).`,
  );
}

async function choosePorts(): Promise<ServicePorts & { readonly downloads: number }> {
  const names = [...SERVICE_NAMES, "downloads"] as const;
  const ports = new Set<number>();
  while (ports.size < names.length) ports.add(await findFreePort());
  const entries = names.map((name, i) => [name, [...ports][i]] as const);
  return Object.fromEntries(entries) as Record<ServiceName | "downloads", number>;
}

/** On the ports of the last start when they are free, so that what was registered then still points here. */
async function openSampleSite(state: StateDirectory): Promise<SampleSite> {
  const kept = readStateFile(state.site) ?? {};
  const choose = async (name: string) => {
    const port = Number(kept[name] ?? "0");
    return port > 0 && (await isPortFree(port)) ? port : findFreePort();
  };
  const site = await startSampleSite({ origin: await choose("origin"), receiver: await choose("receiver") });
  writeStateFile(state.site, { origin: String(site.originPort), receiver: String(site.receiverPort) });
  return site;
}

/** The user's own store, or one below the state directory that serves its downloads on a port of its own. */
function localStore(
  env: CliContext["env"],
  { state, downloads }: { state: StateDirectory; downloads: number },
): Record<string, string> {
  const own = ["SCRAPER_LOCAL_ARTIFACT_DIRECTORY", "SCRAPER_LOCAL_ARTIFACT_BASE_URL", "SCRAPER_S3_ENDPOINT"];
  if (own.some((name) => present(env[name]) !== undefined)) return {};
  return {
    SCRAPER_LOCAL_ARTIFACT_DIRECTORY: state.artifacts,
    SCRAPER_LOCAL_ARTIFACT_BASE_URL: `http://127.0.0.1:${downloads}`,
  };
}

function joined(given: string | undefined, own: string): string {
  const list = present(given);
  return list === undefined ? own : `${list},${own}`;
}

function present(text: string | undefined): string | undefined {
  return text === undefined || text.trim() === "" ? undefined : text;
}
