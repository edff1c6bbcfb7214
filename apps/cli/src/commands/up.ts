import { parseSettings, renderSettingsFaults, type Settings } from "@keble-scraper/service";
import { claimArtifactStore } from "../claim-artifact-store.ts";
import { checkSettingFiles } from "../check-setting-files.ts";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import { createGatewayClient } from "../stack/gateway-client.ts";
import { loadCredentials } from "../stack/load-credentials.ts";
import { type LocalStack, openLocalStack } from "../stack/local-stack.ts";
import { openSampleSite } from "../stack/open-sample-site.ts";
import { runDemo } from "../stack/run-demo.ts";
import { toStackEnvironment } from "../stack/stack-environment.ts";
import { planStack, type ProcessMode } from "../stack/stack-plan.ts";
import { chooseStackPorts } from "../stack/stack-ports.ts";
import { loadStackSecrets } from "../stack/stack-secrets.ts";
import { openDatabaseServer, openRedisServer } from "../stack/stack-servers.ts";
import { openStateDirectory, type StateDirectory } from "../stack/state-directory.ts";
import { takeStateLock } from "../stack/state-lock.ts";
import { waitUntilReady } from "../stack/wait-until-ready.ts";
import { untilAborted } from "../until-aborted.ts";
import { migrateDatabase, type MigrateOptions, sayIfRolesAreOne } from "./migrate.ts";

/** The line that says that everything answers. */
const UP_LINE = "Keble Scraper is up";

type UpOptions = {
  readonly mode: ProcessMode;
  readonly fetchWorkers: number;
  readonly demo: "RUN" | "SKIP";
  /** What becomes of artifacts of a database that does not say which store they are in. */
  readonly rows: MigrateOptions["rows"];
};

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
  } catch (error) {
    if (!context.stop.aborted) throw error;
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
  const ports = await chooseStackPorts(wanted.gateway.port);
  const site = await openSampleSite(state);
  stack.onStop(() => site.close());

  const database = await stack.step("Postgres", () => openDatabaseServer(stack, context, wanted, secrets));
  const redisUrl = await stack.step("Redis", () => openRedisServer(stack, context));
  const urls = { migrationUrl: database.migrationUrl, appUrl: database.url };
  await stack.step("Migrations", () => migrateDatabase(urls));
  sayIfRolesAreOne(context, urls);

  const { env: given } = context;
  const { environment } = wanted;
  const env = toStackEnvironment({ env: given, environment, state, secrets, database, redisUrl, ports, site });
  await stack.step("Artifact store", () => claimArtifactStore(context, parseOrThrow(env), options.rows));
  const { mode, fetchWorkers } = options;
  const plan = planStack({
    mode,
    fetchWorkers,
    fetchSlots: wanted.fetching.slots,
    renderWorkers: hasRenderRoute(wanted.routes) ? 1 : 0,
    ports: ports.services,
  });
  await stack.step(`Services and workers (${plan.length} processes)`, () => stack.startProcesses(plan, env));

  const gatewayUrl = `http://127.0.0.1:${ports.gateway}`;
  await stack.step("Readiness", () => waitUntilReady(gatewayUrl, context.stop));
  const gateway = createGatewayClient(gatewayUrl);
  const credentials = await stack.step("Keys", () =>
    loadCredentials({ state, gateway, gatewayUrl, databaseUrl: database.url, auditDays: wanted.retention.auditDays }),
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

/** The settings that the stack's processes will have. */
function parseOrThrow(env: CliContext["env"]): Settings {
  const parsed = parseSettings(env);
  if (parsed.ok) return parsed.value;
  throw new CliError("USAGE", `Some settings can't be used:\n${renderSettingsFaults(parsed.faults)}`);
}

function hasRenderRoute(routes: Settings["routes"]): boolean {
  return routes.LOCAL_RENDER.browser !== null || routes.CLOUDFLARE_RENDER.api !== null;
}

/** Parses all settings before anything is started; the servers that `up` starts itself are stood in for. */
function checkSettings(context: CliContext): Settings {
  const settings = readSettings(context, {
    environmentDefault: "development",
    base: {
      SCRAPER_DATABASE_URL: "postgres://unread.invalid/keble_scraper",
      ...UNREAD_SETTINGS,
    },
  });
  if (settings.environment === "development" || settings.environment === "test") {
    checkSettingFiles(settings);
    return settings;
  }
  throw new CliError(
    "USAGE",
    `SCRAPER_ENVIRONMENT: \`up\` is for development and test, not for ${settings.environment}. Run the processes one by one there.`,
  );
}
