import { createDatabase } from "@keble-scraper/db";
import { type Container, createContainer, createInternalServer, createLogger } from "@keble-scraper/service";
import { callbackPolicyOf, logAllowedReceivers } from "./callback-policy.ts";
import type { CallbacksContext } from "./context.ts";
import { callbacksRouter } from "./router.ts";
import { createSecretBox } from "./secret-box.ts";
import type { CallbacksSettings } from "./settings.ts";

export { type CallbacksWorkerOverrides, createCallbacksWorker } from "./worker/callbacks-worker.ts";

/** Endpoints change seldom and are read by few. */
const COMMAND_CONNECTIONS = 4;
const READ_CONNECTIONS = 4;
const STATEMENT_TIMEOUT_MS = 10_000;
/** Tries of one endpoint at once, where its registration names no number: what a small receiver can take. */
const MAX_CONCURRENCY_DEFAULT = 5;

/** The callbacks service: endpoints, and what became of events. The sending is done by its workers. */
export function createCallbacks(settings: CallbacksSettings): Container & { readonly url: string } {
  const logger = createLogger({ name: "callbacks", level: settings.logLevel });
  logAllowedReceivers(settings, logger);
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-callbacks",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const context: CallbacksContext = {
    database,
    policy: callbackPolicyOf(settings),
    secrets: createSecretBox(settings.secretKey),
    auditDays: settings.retention.auditDays,
    defaults: {
      attemptBudget: settings.callbacks.attemptBudget,
      timeoutMs: settings.callbacks.timeoutMs,
      maxConcurrency: MAX_CONCURRENCY_DEFAULT,
    },
  };
  const checks = [database];
  const server = createInternalServer({
    name: "callbacks",
    port: settings.internal.ports.callbacks,
    host: settings.internal.host,
    router: callbacksRouter,
    context,
    serviceToken: settings.internal.serviceToken,
    checks,
    logger,
  });
  const container = createContainer({
    name: "callbacks",
    components: [database, server],
    checks,
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
  return {
    ...container,
    get url() {
      return server.url;
    },
  };
}
