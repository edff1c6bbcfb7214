import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "@keble-scraper/db";
import {
  createTestDatabase,
  type S3Server,
  startS3,
  startTcpProxy,
  type TcpProxy,
  testRedis,
  type TestDatabase,
} from "@keble-scraper/testkit";
import { Redis } from "ioredis";
import postgres from "postgres";
import { textOfProgram } from "./run-program.ts";

/** What a dry run printed, as far as tests look at it. */
export type Report = {
  readonly campaign: string;
  readonly audit: string;
  readonly database: string;
  readonly redis: { readonly prefix: string; readonly keys: number | null };
  readonly artifacts: { readonly owner: string } | null;
  readonly inventory: { readonly objects: number; readonly bytes: number; readonly sha256: string };
  readonly rows: Readonly<Record<string, number>>;
  readonly writers: { readonly connections: readonly { application: string }[]; readonly leases: number };
};

/** A deployment that has run and was stopped, with another one's keys in the same Redis. */
export type ResetRig = AsyncDisposable & {
  readonly database: TestDatabase;
  /** The owner of the schema. */
  readonly sql: postgres.Sql;
  readonly s3: S3Server;
  readonly redisProxy: TcpProxy;
  readonly redis: Redis;
  readonly prefix: string;
  readonly snapshot: string;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<string>;
  /** A dry run, and the flags that apply it. */
  plan(campaign?: string): Promise<{ readonly report: Report; readonly flags: Record<string, string> }>;
  apply(flags: Readonly<Record<string, string>>, env?: Readonly<Record<string, string>>): Promise<string>;
  /** Everything that a reset may touch: rows by table, keys of the namespace, objects of the store. */
  left(): Promise<{ rows: number; keys: number; objects: number }>;
};

const JOBS = 30;

/** Opens one: 30 ended jobs with attempts, artifacts and bytes, an event, money, a stray object on its way out, keys in Redis. */
export async function openResetRig(): Promise<ResetRig> {
  const folder = mkdtempSync(join(tmpdir(), "keble-reset-"));
  const database = await createTestDatabase({ migrate });
  const sql = postgres(database.migrationUrl, { max: 2, onnotice: () => undefined });
  const s3 = await startS3();
  const server = await testRedis();
  const redisProxy = await startTcpProxy({ target: server.url });
  const redis = new Redis(server.url);
  const name = server.prefix.replaceAll(":", "");
  const prefix = `{${name}}`;
  const snapshot = join(folder, "snapshot.dump");
  const base = {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: database.url,
    SCRAPER_MIGRATION_DATABASE_URL: database.migrationUrl,
    SCRAPER_STATE_DIRECTORY: folder,
    SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/main",
    SCRAPER_REDIS_URL: redisProxy.through(server.url),
    SCRAPER_REDIS_PREFIX: name,
    SCRAPER_S3_ENDPOINT: s3.url,
    SCRAPER_S3_BUCKET: s3.bucket,
    SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
  };

  function run(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    return textOfProgram(args, { ...base, ...env });
  }

  const apply: ResetRig["apply"] = (flags, env) =>
    run(["reset", "--apply", ...Object.entries(flags).flatMap(([flag, value]) => [flag, value])], env);

  await run(["migrate"]);
  await fill(sql, s3);
  const others = [`{${name}2}:kept`, `${name}:kept`, "{other}:kept"];
  await redis.mset(Object.fromEntries([...others, `${prefix}:a`, `${prefix}:bell:fetch`].map((key) => [key, "1"])));
  writeFileSync(snapshot, "a dump of the whole database");

  return {
    database,
    sql,
    s3,
    redisProxy,
    redis,
    prefix,
    snapshot,
    run,
    apply,
    async plan(campaign = "first") {
      const report = JSON.parse(await run(["reset", "--json", "--campaign", campaign])) as Report;
      const [{ later } = { later: "" }] = await sql<{ later: string }[]>`select rfc3339(clock_timestamp()) as later`;
      utimesSync(snapshot, new Date(later), new Date(later));
      return {
        report,
        flags: {
          "--campaign": campaign,
          "--writer-stop": later,
          "--database": report.database,
          "--redis": report.redis.prefix,
          "--artifact-owner": report.artifacts?.owner ?? "",
          "--snapshot": snapshot,
          "--inventory": report.inventory.sha256,
          "--audit": report.audit,
        },
      };
    },
    async left() {
      const [row] = await sql<{ rows: number }[]>`
        select ((select count(*) from jobs) + (select count(*) from attempts) + (select count(*) from artifacts)
              + (select count(*) from blobs) + (select count(*) from object_deletions) + (select count(*) from budgets)
              + (select count(*) from callback_events))::int as rows`;
      const keys = await redis.keys(`${prefix}*`);
      return { rows: row?.rows ?? -1, keys: keys.length, objects: s3.objects().size };
    },
    async [Symbol.asyncDispose]() {
      await redis.del(...others, ...(await redis.keys(`${prefix}*`)));
      redis.disconnect();
      await redisProxy[Symbol.asyncDispose]();
      await s3[Symbol.asyncDispose]();
      await sql.end({ timeout: 1 });
      await database[Symbol.asyncDispose]();
      rmSync(folder, { recursive: true });
    },
  };
}

async function fill(sql: postgres.Sql, s3: S3Server): Promise<void> {
  await sql`
    insert into callback_endpoints (id, caller_id, name, url, attempt_budget, timeout_ms, max_concurrency)
    values (gen_random_uuid(), 'acme', 'orders', 'https://a.example/', 3, 1000, 1)`;
  await sql`insert into budgets (scope, name, period, starts_on) values ('CALLER', 'acme', 'DAY', current_date)`;
  for (let at = 0; at <= JOBS; at += 1) {
    const bytes = Buffer.from(`body ${at}`);
    const sha256 = createHash("sha256").update(bytes).digest();
    const generation = String(at).padStart(16, "0");
    await s3.plant(`artifacts/${sha256.toString("hex")}/${generation}`, bytes);
    if (at === JOBS) {
      await sql`insert into object_deletions (id, sha256, generation) values (gen_random_uuid(), ${sha256}, ${generation})`;
      continue;
    }
    await sql`
      with blob as (
        insert into blobs (id, sha256, generation, size_bytes) values (gen_random_uuid(), ${sha256}, ${generation}, ${bytes.length})
        returning id
      ), artifact as (
        insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
        select gen_random_uuid(), 'acme', id, ${sha256}, ${bytes.length}, 'https://a.example/', 'https://a.example/', 200, now() from blob
        returning id
      )
      insert into jobs (id, caller_id, request_sha256, target, transport, routes, freshness, accept, robots, labels, host_key,
        attempt_budget, max_body_bytes, cost_cap_micros, created_at, due_at, deadline_at, status, finished_at, artifact_id)
      select gen_random_uuid(), 'acme', '\\x00', '{"url":"https://a.example/","method":"GET","headers":{}}', 'HTTP', '{DIRECT}', 'NO_CACHE',
        'SUCCESS_ONLY', 'RESPECT', '{}', 'a.example', 3, 1000, 0, now(), now(), now() + interval '1 h', 'CANCELLED', now(), id from artifact`;
  }
  await sql`
    insert into attempts (id, job_id, ordinal, lease_token, route, outcome, started_at, finished_at)
    select gen_random_uuid(), id, 1, gen_random_uuid(), 'DIRECT', 'CANCELLED', now(), now() from jobs`;
}
