import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  createGate,
  createTestDatabase,
  type S3Server,
  startS3,
  startTcpProxy,
  testRedis,
} from "@keble-scraper/testkit";
import { migrate } from "@keble-scraper/db";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";

const BINARY = fileURLToPath(new URL("../bin/keble-scraper.js", import.meta.url));
const READY_MESSAGE = "keble-scraper.ready";
/** Every process that opens the store. */
const OPENERS = [["artifacts"], ["worker", "fetch"], ["worker", "maintenance"]] as const;
const EXIT = { USAGE: 2, STORE_REFUSED: 8 } as const;

type Env = Readonly<Record<string, string>>;
type Process = {
  readonly child: ChildProcess;
  readonly ready: Promise<void>;
  readonly ended: Promise<{ readonly code: number | null; readonly text: string }>;
  text(): string;
  /** Resolves once its output holds a text. */
  said(text: string): Promise<void>;
};

let folder: string;
let redis: Awaited<ReturnType<typeof testRedis>>;
let s3: S3Server;
const children = new Set<ChildProcess>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "keble-fences-"));
  redis = await testRedis();
  s3 = await startS3();
});
afterAll(async () => {
  for (const child of children) child.kill("SIGKILL");
  await s3[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
});

/** The settings of a deployment on a database, with the stand-in as its store. */
function deployment(database: { url: string; migrationUrl: string }, more: Env = {}): Env {
  return {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_STATE_DIRECTORY: folder,
    SCRAPER_DATABASE_URL: database.url,
    SCRAPER_MIGRATION_DATABASE_URL: database.migrationUrl,
    SCRAPER_REDIS_URL: redis.url,
    SCRAPER_REDIS_PREFIX: redis.prefix.replaceAll(":", ""),
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
    SCRAPER_INTERNAL_PORT: "0",
    SCRAPER_DRAIN_GRACE_SECONDS: "1",
    SCRAPER_S3_ENDPOINT: s3.url,
    SCRAPER_S3_BUCKET: s3.bucket,
    SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
    SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
    ...more,
  };
}

function start(args: readonly string[], env: Env): Process {
  const child = spawn(process.execPath, [BINARY, ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe", "ipc"],
  });
  children.add(child);
  const chunks: string[] = [];
  const waiting: { text: string; open: () => void }[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on("data", (chunk: Buffer) => {
      chunks.push(chunk.toString());
      for (const { text, open } of waiting) if (chunks.join("").includes(text)) open();
    });
  }
  const ready = createGate();
  child.on("message", (message) => {
    if (message === READY_MESSAGE) ready.open();
  });
  const ended = once(child, "close").then(([code]) => {
    children.delete(child);
    return { code: code as number | null, text: chunks.join("") };
  });
  const untilEnded = ended.then(({ code, text }) => {
    throw new Error(`${args.join(" ")} ended with ${String(code)}:\n${text}`);
  });
  const readyOrEnded = Promise.race([ready.opened, untilEnded]);
  for (const promise of [untilEnded, readyOrEnded]) promise.catch(() => undefined);
  return {
    child,
    ended,
    ready: readyOrEnded,
    text: () => chunks.join(""),
    said(text) {
      const gate = createGate();
      waiting.push({ text, open: gate.open });
      if (chunks.join("").includes(text)) gate.open();
      return Promise.race([gate.opened, untilEnded]);
    },
  };
}

const run = (args: readonly string[], env: Env) => start(args, env).ended;

/** Runs commands at once and wants each refused with one line for a person that holds these words. */
async function expectRefused(
  commands: readonly (readonly string[])[],
  env: Env,
  words: readonly string[],
): Promise<void> {
  const ends = await Promise.all(commands.map((args) => run(args, env)));
  for (const [at, { code, text }] of ends.entries()) {
    const name = (commands[at] ?? []).join(" ");
    expect(code, `${name}: ${text}`).toBe(EXIT.STORE_REFUSED);
    const told = text.split("\n").filter((line) => /^[A-Z_]+: /.test(line));
    expect(told, name).toHaveLength(1);
    for (const word of words) expect(told[0], name).toContain(word);
    expect(text, name).not.toContain("container.started");
    expect(text, name).not.toContain(env["SCRAPER_S3_SECRET_ACCESS_KEY"]);
  }
}

/** Starts all openers at once, waits until each is ready, and stops them. */
async function expectStarted(env: Env): Promise<void> {
  const processes = OPENERS.map((args) => start(args, env));
  await Promise.all(processes.map(({ ready }) => ready));
  for (const { child } of processes) child.kill("SIGTERM");
  for (const { code, text } of await Promise.all(processes.map(({ ended }) => ended))) expect(code, text).toBe(0);
}

test("A5 half a store, and in staging no store, end every command before any request", async () => {
  const before = s3.requests().length;
  const nowhere = { url: "postgres://app:app@127.0.0.1:1/scraper", migrationUrl: "postgres://o:o@127.0.0.1:1/scraper" };
  const whole = deployment(nowhere);
  const owned = { ...whole, SCRAPER_ENVIRONMENT: "staging", SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/staging" };
  const s3Names = Object.keys(whole).filter((name) => name.startsWith("SCRAPER_S3_"));
  const noStore = Object.fromEntries(Object.entries(owned).filter(([name]) => !s3Names.includes(name)));
  const half = { ...whole, SCRAPER_S3_SECRET_ACCESS_KEY: " \t" };
  const runs = [
    ...[["migrate"], ...OPENERS].map((args) => ({ args, env: half, name: "SCRAPER_S3_SECRET_ACCESS_KEY" })),
    { args: ["migrate"], env: noStore, name: "SCRAPER_S3_ENDPOINT" },
    { args: ["worker", "fetch"], env: noStore, name: "SCRAPER_S3_ENDPOINT" },
  ];
  const ends = await Promise.all(runs.map(({ args, env }) => run(args, env)));
  for (const [at, { code, text }] of ends.entries()) {
    expect(code, text).toBe(EXIT.USAGE);
    expect(text).toContain(runs[at]?.name);
    expect(text).not.toContain(s3.secretAccessKey);
  }
  expect(s3.requests()).toHaveLength(before);
});

test("A4 of two owners that claim one empty prefix at once exactly one wins, and only its processes start", async () => {
  await using first = await createTestDatabase({ migrate });
  await using second = await createTestDatabase({ migrate });
  const owners = ["acme/one", "acme/two"];
  const environments = [first, second].map((database, at) =>
    deployment(database, { SCRAPER_S3_PREFIX: "raced", SCRAPER_ARTIFACT_NAMESPACE_OWNER: owners[at] ?? "" }),
  );
  const ends = await Promise.all(environments.map((env) => run(["migrate"], env)));
  const [won, lost] = ends[0]?.code === 0 ? [0, 1] : [1, 0];
  expect(ends[won], ends[won]?.text).toMatchObject({ code: 0 });
  expect(ends[lost], ends[lost]?.text).toMatchObject({ code: EXIT.STORE_REFUSED });
  expect(ends[lost]?.text).toContain(
    `belongs to ${JSON.stringify(owners[won])}, not to ${JSON.stringify(owners[lost])}`,
  );
  const [winner, loser] = [environments[won] ?? {}, environments[lost] ?? {}];

  const mark = (await s3.bytes("raced/owner")).toString();
  expect(JSON.parse(mark)).toMatchObject({ owner: owners[won] });
  expect((await run(["migrate"], winner)).text).toBe("The database is up to date\n");
  expect((await s3.bytes("raced/owner")).toString()).toBe(mark);

  await expectStarted(winner);
  await expectRefused([["worker", "fetch"]], loser, ["NAMESPACE_INCOMPLETE", "keble-scraper migrate"]);
  await expectRefused([["migrate"]], loser, ["MARK_OF_ANOTHER_OWNER", owners[won] ?? "", owners[lost] ?? ""]);
});

test("A4 a second owner, another bucket, prefix, kind or directory, and a mark that is gone are each refused by name", async () => {
  await using database = await createTestDatabase({ migrate });
  const env = deployment(database, { SCRAPER_S3_PREFIX: "held", SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/main" });
  expect(await run(["migrate"], env)).toMatchObject({ code: 0 });
  const withoutS3 = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("SCRAPER_S3_")));
  const asked = s3.requests().length;
  const all = [["migrate"], ...OPENERS];
  await expectRefused(all, { ...env, SCRAPER_ARTIFACT_NAMESPACE_OWNER: "acme/other" }, ["OTHER_OWNER", "acme/main"]);
  await expectRefused([["artifacts"]], { ...env, SCRAPER_S3_BUCKET: "another-bucket" }, ["OTHER_BUCKET", s3.bucket]);
  await expectRefused([["worker", "fetch"]], { ...env, SCRAPER_S3_PREFIX: "else" }, ["OTHER_PREFIX", "held"]);
  await expectRefused([["worker", "maintenance"]], withoutS3, ["OTHER_KIND", "LOCAL"]);
  // All of these differ from the database's row, so that the wrong store is not even asked.
  expect(s3.requests()).toHaveLength(asked);
  s3.remove("held/owner");
  await expectRefused([["migrate"], ["artifacts"]], env, ["MARK_MISSING"]);
  expect(s3.objects().has("held/owner")).toBe(false);
});

test("A4 a process that starts while the store or Postgres is down takes no work until it passed the fence", async () => {
  await using database = await createTestDatabase({ migrate });
  await using proxy = await startTcpProxy({ target: database.url });
  const env = deployment(database, { SCRAPER_S3_PREFIX: "late" });
  expect(await run(["migrate"], env)).toMatchObject({ code: 0 });
  const sql = postgres(database.migrationUrl, { max: 1, onnotice: () => undefined });
  try {
    await s3.stop();
    await proxy.refuse();
    const [worker, maintenance] = [
      start(["worker", "fetch"], env),
      start(["worker", "maintenance"], { ...env, SCRAPER_DATABASE_URL: proxy.through(database.url) }),
    ];
    await Promise.all([worker.said("start.waiting"), maintenance.said("start.waiting")]);
    expect(worker.text() + maintenance.text()).not.toContain("container.started");
    // What differs is noticed when the store is back, not before: the wait is no way around the fence.
    await sql`update store_namespace set owner = 'acme/else'`;
    await s3.start();
    expect(await worker.ended).toMatchObject({ code: EXIT.STORE_REFUSED });
    await sql`update store_namespace set owner = ${`test/${database.name}`}`;
    await proxy.restore();
    await maintenance.ready;
    maintenance.child.kill("SIGTERM");
    expect(await maintenance.ended).toMatchObject({ code: 0 });
  } finally {
    await s3.start();
    await sql.end({ timeout: 1 });
  }
});
