import { createHash, randomBytes, randomUUID } from "node:crypto";
import { type BinaryStore, createGeneration, createStore } from "@keble-scraper/artifact-store";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { reviewArtifacts } from "@keble-scraper/db/commands/artifacts";
import { type AttemptReport, claimJobs, type JobLease, settleJobs } from "@keble-scraper/db/commands/fetching";
import { submitJobs } from "@keble-scraper/db/commands/intake";
import { parseSettings, type Settings } from "@keble-scraper/service";
import { createTestDatabase, type S3Server, startS3, type TestDatabase } from "@keble-scraper/testkit";

const DAY_MS = 86_400_000;
const REVIEW = {
  limit: 100,
  artifactRetentionMs: 90 * DAY_MS,
  evidenceRetentionMs: 7 * DAY_MS,
  urlMs: 300_000,
  auditRetentionDays: 400,
};

/** A database, a bucket and what fills both as a worker does. */
export type DeletionRig = AsyncDisposable & {
  readonly testDatabase: TestDatabase;
  readonly database: Database;
  readonly s3: S3Server;
  readonly store: BinaryStore;
  readonly env: Record<string, string>;
  readonly settings: Settings;
  /** Runs `count` jobs to their end that all fetched these bytes, each with an object of its own. */
  storeBytes(bytes: Buffer, count?: number): Promise<{ artifactId: string; jobIds: string[] }>;
  /** As many artifacts of different bytes that nothing holds any more; resolves to their objects' keys. */
  storeUnheld(count: number): Promise<string[]>;
  /** Lets a job hold its bytes no longer, as its purge does, and makes its artifact due. */
  letGo(jobIds: readonly string[]): Promise<void>;
  /** Deletes whatever artifacts are due and unheld, and ages their objects until they are due too. */
  markAll(): Promise<void>;
  ageDeletions(): Promise<void>;
  /** The key of an artifact's object; null: it is deleted. */
  objectOf(artifactId: string): Promise<string | null>;
  keys(): string[];
  /** Rows that still have to do with deletion. */
  left(): Promise<{ deletions: number; deleting: number }>;
};

/** The settings of an environment that has no fault. */
export function parseEnv(env: Record<string, string>): Settings {
  const parsed = parseSettings(env);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  return parsed.value;
}

/** Opens a rig whose bucket is claimed by nobody yet. */
export async function openDeletionRig(): Promise<DeletionRig> {
  const testDatabase = await createTestDatabase({ migrate });
  const s3 = await startS3();
  const pools = { applicationName: "test", commandConnections: 8, readConnections: 1, statementTimeoutMs: 20_000 };
  const database = createDatabase({ url: testDatabase.url, ...pools });
  const sql = database.commands;
  const env = {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: testDatabase.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "0.2",
    SCRAPER_SCRUB_OBJECTS_PER_MINUTE: "0",
    SCRAPER_S3_ENDPOINT: s3.url,
    SCRAPER_S3_BUCKET: s3.bucket,
    SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };
  const settings = parseEnv(env);
  const store = createStore(settings.artifacts.store);
  await store.start(new AbortController().signal);

  async function leases(count: number): Promise<JobLease[]> {
    const jobs = Array.from({ length: count }, newJob);
    await submitJobs(sql, { callerId: "acme", jobs, queuedMax: null });
    const taken: JobLease[] = [];
    const until = performance.now() + 5_000;
    while (taken.length < count) {
      const claim = {
        transport: "HTTP",
        leaseSeconds: 60,
        afterCaller: "",
        of: "TRUSTED",
        callerRunningMax: null,
      } as const;
      taken.push(...(await claimJobs(sql, { ...claim, slots: count - taken.length })).leases);
      if (performance.now() > until) throw new Error("nothing to claim");
    }
    return taken;
  }

  async function put(sha256: string, bytes: Buffer): Promise<string> {
    const generation = createGeneration();
    await s3.plant(`artifacts/${sha256}/${generation}`, bytes);
    return generation;
  }

  const rig: DeletionRig = {
    testDatabase,
    database,
    s3,
    store,
    env,
    settings,
    async storeBytes(bytes, count = 1) {
      const sha256 = createHash("sha256").update(bytes).digest("hex");
      const taken = await leases(count);
      await Promise.all(
        taken.map(async (lease) => {
          const report = toReport(lease, { sha256, generation: await put(sha256, bytes), sizeBytes: bytes.byteLength });
          const [verdict] = await settleJobs(sql, [report], { jobRetentionMs: 90 * DAY_MS, abortGraceMs: 2_000 });
          if (verdict?.verdict !== "SETTLED") throw new Error(`not settled: ${verdict?.verdict}`);
        }),
      );
      const jobIds = taken.map((lease) => lease.id);
      const rows = await sql<{ artifact_id: string }[]>`
        select distinct artifact_id from jobs where id = any(${jobIds}::uuid[])`;
      if (rows.length !== 1 || rows[0] === undefined) throw new Error("equal bytes of one caller are one artifact");
      return { artifactId: rows[0].artifact_id, jobIds };
    },
    async storeUnheld(count) {
      const keys: string[] = [];
      for (let index = 0; index < count; index += 1) {
        const bytes = randomBytes(32);
        const sha256 = createHash("sha256").update(bytes).digest("hex");
        const generation = await put(sha256, bytes);
        const blobId = randomUUID();
        await sql`
          insert into blobs (id, sha256, generation, size_bytes) values (${blobId}, decode(${sha256}, 'hex'), ${generation}, 32)`;
        await sql`
          insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
          values (${randomUUID()}, 'acme', ${blobId}, decode(${sha256}, 'hex'), 32, 'https://shop.example.com/', 'https://shop.example.com/', 200, clock_timestamp())`;
        keys.push(`artifacts/${sha256}/${generation}`);
      }
      return keys;
    },
    async letGo(jobIds) {
      await sql`
        update artifacts set review_at = clock_timestamp() - interval '1 s'
        where id in (select artifact_id from jobs where id = any(${[...jobIds]}::uuid[]))`;
      await sql`delete from jobs where id = any(${[...jobIds]}::uuid[])`;
    },
    async markAll() {
      while ((await reviewArtifacts(sql, REVIEW)).reviewed > 0);
      await rig.ageDeletions();
    },
    async ageDeletions() {
      await sql`update object_deletions set due_at = clock_timestamp() - interval '1 ms'`;
    },
    async objectOf(artifactId) {
      const [row] = await sql<{ key: string }[]>`
        select 'artifacts/' || encode(b.sha256, 'hex') || '/' || b.generation as key
        from artifacts a join blobs b on b.id = a.blob_id
        where a.id = ${artifactId} and a.state = 'AVAILABLE' and b.state = 'AVAILABLE'`;
      return row?.key ?? null;
    },
    keys: () => [...s3.objects().keys()].filter((key) => !key.endsWith("/owner")),
    async left() {
      const [row] = await sql<[{ deletions: number; deleting: number }]>`
        select (select count(*) from object_deletions)::int as deletions,
               (select count(*) from blobs where state = 'DELETING')::int as deleting`;
      return row;
    },
    async [Symbol.asyncDispose]() {
      await store.stop(performance.now());
      await database.stop(performance.now() + 1_000);
      await s3[Symbol.asyncDispose]();
      await testDatabase[Symbol.asyncDispose]();
    },
  };
  return rig;
}

function newJob() {
  return {
    id: randomUUID(),
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
    robots: "RESPECT",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 1_000_000,
    costCapMicros: 0,
    deadlineSeconds: 300,
    callbackEndpoint: null,
  } satisfies Parameters<typeof submitJobs>[1]["jobs"][number];
}

function toReport(
  lease: JobLease,
  bytes: { readonly sha256: string; readonly generation: string; readonly sizeBytes: number },
): AttemptReport {
  return {
    id: lease.id,
    token: lease.token,
    attemptId: randomUUID(),
    outcome: "SUCCEEDED",
    httpStatus: 200,
    failure: null,
    retryAfterMs: null,
    bodyBytes: bytes.sizeBytes,
    wireBytes: bytes.sizeBytes,
    timings: {},
    result: { httpStatus: 200, finalUrl: "https://shop.example.com/p/1" },
    bytes: {
      kind: "PUT",
      blobId: randomUUID(),
      artifactId: randomUUID(),
      contentType: "text/html",
      finalUrl: "https://shop.example.com/p/1",
      httpStatus: 200,
      ...bytes,
    },
    next: "FINISH",
    waitMs: 0,
    hasReservation: false,
    costMicros: 0,
    providerRequestId: null,
    hold: null,
    quarantine: null,
  };
}
