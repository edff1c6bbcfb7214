import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Database, createDatabase, findJob, listAttempts, migrate } from "@keble-scraper/db";
import { type NewJob, submitJobs } from "@keble-scraper/db/commands/intake";
import { claimTestStore } from "@keble-scraper/db/testing";
import { type Container, type Signals, parseSettings } from "@keble-scraper/service";
import { type Origin, createTestDatabase, startOrigin, testRedis } from "@keble-scraper/testkit";
import { createFetchWorker } from "../src/app.ts";
import type { FetchingSettings } from "../src/settings.ts";

/** A database, an origin and folders of their own, and workers on them. */
export type FetchRig = AsyncDisposable & {
  readonly database: Database;
  readonly origin: Origin;
  readonly settings: FetchingSettings;
  /** Starts a worker; it is stopped with the rig. */
  startWorker(options?: { signals?: Signals; env?: Record<string, string>; graceMs?: number }): Promise<Container>;
  submit(path: string, overrides?: Partial<NewJob>, callerId?: string): Promise<string>;
  read(id: string): Promise<NonNullable<Awaited<ReturnType<typeof findJob>>>>;
  ledger(id: string): Promise<string[]>;
};

/** Opens a rig. Timings are short: polls every 50 ms, no backoff worth waiting for. */
export async function openFetchRig(env: Record<string, string> = {}): Promise<FetchRig> {
  const folder = await mkdtemp(join(tmpdir(), "fetch-rig-"));
  const testDatabase = await createTestDatabase({ migrate });
  const redis = await testRedis();
  const origin = await startOrigin();
  const settingsOf = (more: Record<string, string> = {}): FetchingSettings => {
    const parsed = parseSettings({
      SCRAPER_ENVIRONMENT: "test",
      SCRAPER_LOG_LEVEL: "silent",
      SCRAPER_DATABASE_URL: testDatabase.url,
      SCRAPER_REDIS_URL: redis.url,
      SCRAPER_REDIS_PREFIX: redis.prefix.replaceAll(":", ""),
      SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
      SCRAPER_SECRET_KEY: "ab".repeat(32),
      SCRAPER_STATE_DIRECTORY: folder,
      SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: `127.0.0.1:${origin.port}`,
      SCRAPER_POLL_INTERVAL_SECONDS: "0.05",
      SCRAPER_RETRY_BASE_MS: "1",
      SCRAPER_FETCH_SLOTS: "20",
      ...env,
      ...more,
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    return parsed.value;
  };
  const database = createDatabase({
    url: testDatabase.url,
    applicationName: "test",
    commandConnections: 4,
    readConnections: 2,
    statementTimeoutMs: 20_000,
  });
  const workers: { container: Container; graceMs: number }[] = [];
  return {
    database,
    origin,
    settings: settingsOf(),
    async startWorker({ signals, env: more, graceMs = 5_000 } = {}) {
      const settings = settingsOf(more);
      await claimTestStore(settings, testDatabase);
      const container = createFetchWorker(settings, signals === undefined ? {} : { signals });
      await container.start();
      workers.push({ container, graceMs });
      return container;
    },
    async submit(path, overrides = {}, callerId = "acme") {
      const id = crypto.randomUUID();
      const job: NewJob = {
        id,
        idempotencyKey: null,
        requestSha256: "00".repeat(32),
        hostKey: "127.0.0.1",
        capture: null,
        egress: null,
        target: { url: `http://127.0.0.1:${origin.port}${path}`, method: "GET", headers: {} },
        transport: "HTTP",
        routes: ["DIRECT"],
        freshness: "NO_CACHE",
        accept: "SUCCESS_ONLY",
        contentTypes: null,
        robots: "IGNORE",
        labels: {},
        attemptBudget: 3,
        maxBodyBytes: 10_000_000,
        costCapMicros: 0,
        deadlineSeconds: 60,
        callbackEndpoint: null,
        ...overrides,
      };
      const [verdict] = await submitJobs(database.commands, { callerId, jobs: [job], queuedMax: null });
      if (verdict?.kind !== "ACCEPTED") throw new Error("not accepted");
      return id;
    },
    async read(id) {
      const job = await findJob(database.reads, id, null);
      if (job === null) throw new Error("no such job");
      return job;
    },
    async ledger(id) {
      const page = await listAttempts(database.reads, { jobId: id, afterId: null, limit: 50 });
      return page.items.map((attempt) => attempt.outcome);
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(workers.map(({ container, graceMs }) => container.stop(graceMs)));
      await database.stop(performance.now() + 1_000);
      await origin.stop();
      await testDatabase[Symbol.asyncDispose]();
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Reads the job again until it is terminal: the database is the only one who knows. */
export async function untilEnded(rig: FetchRig, id: string) {
  for (;;) {
    const job = await rig.read(id);
    if (job.finishedAt !== null) return job;
    await new Promise((resolve) => setImmediate(resolve));
  }
}
