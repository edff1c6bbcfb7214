import type { CallbackEventDetail, Principal, RegisterCallbackEndpoint } from "@keble-scraper/contract";
import { createDatabase, type Database, findEvent, migrate } from "@keble-scraper/db";
import { closeStrandedDeliveries, recoverDeliveries } from "@keble-scraper/db/commands/callbacks";
import { claimJobs, settleJobs } from "@keble-scraper/db/commands/fetching";
import { cancelJob, submitJobs } from "@keble-scraper/db/commands/intake";
import { type Container, createInternalClient } from "@keble-scraper/service";
import {
  createTestDatabase,
  type ReceivedRequest,
  type Receiver,
  startReceiver,
  testRedis,
} from "@keble-scraper/testkit";
import { createCallbacks, createCallbacksWorker, type CallbacksWorkerOverrides } from "../src/app.ts";
import type { CallbacksRouter } from "../src/router.ts";
import type { CallbacksSettings } from "../src/settings.ts";
import { settingsOf } from "./test-settings.ts";

/** A database, a receiver and a callbacks service of their own, and workers beside them. */
export type CallbacksRig = AsyncDisposable & {
  readonly database: Database;
  readonly receiver: Receiver;
  readonly env: Readonly<Record<string, string>>;
  readonly settings: CallbacksSettings;
  readonly client: ReturnType<typeof createInternalClient<CallbacksRouter>>["client"];
  /** Starts a worker; it is stopped with the rig. */
  startWorker(overrides?: CallbacksWorkerOverrides, env?: Record<string, string>): Promise<Container>;
  /** Registers an endpoint at a path of the receiver. */
  register(
    path: string,
    overrides?: Partial<RegisterCallbackEndpoint>,
  ): Promise<{ id: string; name: string; secret: string }>;
  /** Ends a job that names the endpoint, as cancelled or with a result, and returns its event. */
  endJob(endpoint: string, result?: object): Promise<{ jobId: string; eventId: string }>;
  event(eventId: string): Promise<CallbackEventDetail>;
  /** A path of the receiver that no other test has. */
  path(): string;
  /** What came to a path so far. */
  received(path: string): readonly ReceivedRequest[];
  /** Stops all workers and ends all deliveries, so that the next test finds nothing to do. */
  clear(): Promise<void>;
};

/** A service key with all it takes, and an operator's. */
export const SERVICE: Principal = {
  keyId: "01900000-0000-7000-8000-00000000aaaa",
  kind: "SERVICE",
  callerId: "acme",
  scopes: ["callbacks:manage"],
};
export const OPERATOR: Principal = {
  keyId: "01900000-0000-7000-8000-00000000bbbb",
  kind: "OPERATOR",
  callerId: null,
  scopes: [],
};

const JOB_OPTIONS = { abortGraceMs: 2_000, jobRetentionMs: 90 * 86_400_000 };

/** Opens a rig. Timings are short: polls every 50 ms, no backoff worth waiting for. */
export async function openCallbacksRig(more: Readonly<Record<string, string>> = {}): Promise<CallbacksRig> {
  const testDatabase = await createTestDatabase({ migrate });
  const redis = await testRedis();
  const receiver = await startReceiver();
  const env = {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: testDatabase.url,
    SCRAPER_REDIS_URL: redis.url,
    SCRAPER_REDIS_PREFIX: redis.prefix.replaceAll(":", ""),
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_ALLOWED_CALLBACKS: receiver.hostPort,
    SCRAPER_POLL_INTERVAL_SECONDS: "0.05",
    SCRAPER_CALLBACK_RETRY_BASE_MS: "1",
    SCRAPER_CALLBACK_RETRY_CEILING_MS: "1",
    ...more,
  };
  const settings = settingsOf(env);
  const database = createDatabase({
    url: testDatabase.url,
    applicationName: "test",
    commandConnections: 4,
    readConnections: 2,
    statementTimeoutMs: 20_000,
  });
  const service = createCallbacks(settings);
  await service.start();
  const { serviceToken } = settings.internal;
  const link = createInternalClient<CallbacksRouter>({ url: service.url, serviceToken, timeoutMs: 10_000 });
  let workers: Container[] = [];
  let names = 0;
  let paths = 0;

  async function stopWorkers(): Promise<void> {
    const running = workers;
    workers = [];
    await Promise.all(running.map((container) => container.stop(2_000)));
  }

  async function submit(endpoint: string): Promise<string> {
    const id = crypto.randomUUID();
    const job = {
      id,
      idempotencyKey: null,
      requestSha256: "00".repeat(32),
      hostKey: "127.0.0.1",
      capture: null,
      egress: null,
      target: { url: "https://shop.example.com/p/1", method: "GET", headers: {} },
      transport: "HTTP",
      routes: ["DIRECT"],
      freshness: "NO_CACHE",
      accept: "SUCCESS_ONLY",
      contentTypes: null,
      robots: "IGNORE",
      labels: {},
      attemptBudget: 3,
      maxBodyBytes: 1_000_000,
      costCapMicros: 0,
      deadlineSeconds: 60,
      callbackEndpoint: endpoint,
    };
    const [verdict] = await submitJobs(database.commands, { callerId: "acme", jobs: [job], queuedMax: null });
    if (verdict?.kind !== "ACCEPTED") throw new Error("not accepted");
    return id;
  }

  async function succeed(id: string, result: object): Promise<void> {
    const claim = {
      transport: "HTTP",
      slots: 1,
      leaseSeconds: 60,
      afterCaller: "",
      of: "TRUSTED",
      callerRunningMax: null,
    } as const;
    const { leases } = await claimJobs(database.commands, claim);
    const [lease] = leases;
    if (lease?.id !== id) throw new Error("another job was claimed");
    const report = {
      id,
      token: lease.token,
      attemptId: crypto.randomUUID(),
      outcome: "SUCCEEDED",
      httpStatus: 200,
      failure: null,
      retryAfterMs: null,
      bodyBytes: 0,
      wireBytes: 0,
      timings: {},
      result,
      bytes: null,
      next: "FINISH",
      waitMs: 0,
      hasReservation: false,
      costMicros: 0,
      providerRequestId: null,
      hold: null,
      quarantine: null,
    } as const;
    await settleJobs(database.commands, [report], JOB_OPTIONS);
  }

  return {
    database,
    receiver,
    env,
    settings,
    client: link.client,
    async startWorker(overrides = {}, changed = {}) {
      const container = createCallbacksWorker(settingsOf({ ...env, ...changed }), overrides);
      await container.start();
      workers.push(container);
      return container;
    },
    async register(path, overrides = {}) {
      names += 1;
      const input = { name: `orders-${names}`, url: `${receiver.url}${path}`, ...overrides };
      const answer = await link.client.registerEndpoint.mutate({ principal: SERVICE, input });
      if (!answer.ok) throw new Error(answer.failure.code);
      return answer.value;
    },
    async endJob(endpoint, result) {
      const jobId = await submit(endpoint);
      if (result === undefined) await cancelJob(database.commands, { id: jobId, callerId: null }, JOB_OPTIONS);
      else await succeed(jobId, result);
      const [event] = await database.commands<{ id: string }[]>`select id from callback_events where job_id = ${jobId}`;
      return { jobId, eventId: event?.id ?? "" };
    },
    async event(eventId) {
      const event = await findEvent(database.reads, eventId, null);
      if (event === null) throw new Error("no such event");
      return event;
    },
    path() {
      paths += 1;
      return `/in-${paths}`;
    },
    received: (path) => receiver.requests.filter((request) => request.path === path),
    async clear() {
      await stopWorkers();
      await database.commands`update callback_endpoints set deleted_at = clock_timestamp() where deleted_at is null`;
      await database.commands`
        update callback_deliveries set lease_until = clock_timestamp() - interval '1 s' where lease_token is not null`;
      await recoverDeliveries(database.commands, 1_000);
      await closeStrandedDeliveries(database.commands, 1_000);
    },
    async [Symbol.asyncDispose]() {
      await stopWorkers();
      await link.close();
      await service.stop(1_000);
      await receiver[Symbol.asyncDispose]();
      await database.stop(performance.now() + 1_000);
      await testDatabase[Symbol.asyncDispose]();
    },
  };
}

/** Reads an event again until it is as wanted: the database is the only one who knows. */
export async function untilEvent(
  rig: CallbacksRig,
  eventId: string,
  isWanted: (event: CallbackEventDetail) => boolean,
): Promise<CallbackEventDetail> {
  for (;;) {
    const event = await rig.event(eventId);
    if (isWanted(event)) return event;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** An event that is over, for good or for the time being. */
export const isOver = (event: CallbackEventDetail): boolean =>
  event.state === "DELIVERED" || event.state === "DEAD_LETTER";
