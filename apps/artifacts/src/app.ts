import { createFence, StoreUnavailable } from "@keble-scraper/artifact-store";
import { createDatabase, findNamespace, hasStoredRows, isDatabaseUnready } from "@keble-scraper/db";
import {
  type Clock,
  type Container,
  createContainer,
  createInternalServer,
  createLogger,
  type HealthCheck,
  type Logger,
  startPatiently,
  SYSTEM_CLOCK,
} from "@keble-scraper/service";
import type { ArtifactsContext } from "./context.ts";
import { openDownloads } from "./downloads/open-downloads.ts";
import { artifactsRouter } from "./router.ts";
import type { ArtifactsSettings } from "./settings.ts";

/** What may be replaced: the clock, and where log lines go. */
export type ArtifactsOverrides = { readonly clock?: Clock; readonly logger?: Logger };

/** Where a started service answers: other processes at `url`, downloads of a local store at `downloadsUrl` (S3: null). */
export type Artifacts = Container & { readonly url: string; readonly downloadsUrl: string | null };

const COMMAND_CONNECTIONS = 4;
const READ_CONNECTIONS = 4;
const STATEMENT_TIMEOUT_MS = 10_000;
/** No writer makes this key: a look-up of it asks the store and finds nothing. */
const PROBE_KEY = { sha256: "0".repeat(64), generation: "0".repeat(16) };

/** The artifacts service: records, audited downloads, and the download server of the local store. */
export function createArtifacts(settings: ArtifactsSettings, overrides: ArtifactsOverrides = {}): Artifacts {
  const clock = overrides.clock ?? SYSTEM_CLOCK;
  const logger = overrides.logger ?? createLogger({ name: "artifacts", level: settings.logLevel });
  const { server: downloads, sign, store } = openDownloads(settings, { clock, logger });
  const database = createDatabase({
    url: settings.database.url,
    applicationName: "keble-artifacts",
    commandConnections: COMMAND_CONNECTIONS,
    readConnections: READ_CONNECTIONS,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
  });
  const away = { isAway: (error: unknown) => isDatabaseUnready(error) || error instanceof StoreUnavailable, logger };
  const fence = createFence({
    store,
    owner: settings.artifacts.namespaceOwner,
    findNamespace: () => findNamespace(database.commands),
    hasRows: () => hasStoredRows(database.commands),
  });
  const checks: readonly HealthCheck[] = [
    database,
    { name: "artifact-store", check: async () => store.head(PROBE_KEY).then(() => "ok") },
  ];
  const context: ArtifactsContext = {
    database,
    store,
    signDownload: sign,
    downloadUrlMs: settings.artifacts.downloadUrlMs,
    auditDays: settings.retention.auditDays,
    clock,
  };
  const server = createInternalServer({
    name: "artifacts",
    host: settings.internal.host,
    port: settings.internal.ports.artifacts,
    router: artifactsRouter,
    context,
    serviceToken: settings.internal.serviceToken,
    checks,
    logger,
  });
  const container = createContainer({
    name: "artifacts",
    components: [
      database,
      startPatiently(store, away),
      startPatiently(fence, away),
      ...(downloads === null ? [] : [downloads]),
      server,
    ],
    checks,
    logger,
    drainGraceMs: settings.timings.drainGraceMs,
  });
  return {
    ...container,
    get url() {
      return server.url;
    },
    get downloadsUrl() {
      return downloads?.url ?? null;
    },
  };
}
