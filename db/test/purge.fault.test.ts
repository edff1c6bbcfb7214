import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { untilBlocked } from "@keble-scraper/testkit";
import postgres from "postgres";
import { expect, test } from "vitest";
import { createDatabase } from "../src/database.ts";
import { registerOne } from "./callback-fixtures.ts";
import { openTestDatabase } from "./job-fixtures.ts";
import { countRows, insertExpiredJobs, passMinute, purge, untilMinuteHas } from "./purge-fixtures.ts";

const ROWS_PER_MINUTE = 300;
const EXPIRED = 500;
const KEPT = 40;
const ATTEMPTS = 2;

type Told = { readonly verdict?: string; readonly rows?: number; readonly fault?: string };
/** A purger in another process. */
type Child = {
  readonly name: string;
  /** Lets it purge one batch more. */
  go(): void;
  /** Its next answer. */
  answer(): Promise<Told>;
  signal(signal: "SIGSTOP" | "SIGCONT" | "SIGKILL"): void;
  /** Ends its input and waits for its end. */
  end(): Promise<void>;
};

function startPurger(url: string, name: string): Child {
  const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
  const script = join(import.meta.dirname, "purge-child.ts");
  const child = spawn(process.execPath, [...flags, script, url, name, String(ROWS_PER_MINUTE)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const exited = once(child, "close");
  // A killed child's input is closed under our hands.
  child.stdin.on("error", () => undefined);
  return {
    name,
    go: () => child.stdin.write("\n"),
    async answer() {
      const { value } = (await lines.next()) as { value?: string };
      return JSON.parse(value ?? "{}") as Told;
    },
    signal: (signal) => child.kill(signal),
    async end() {
      child.stdin.end();
      await exited;
    },
  };
}

/**
 * A purger that stands still holds the turn and rows that are not yet deleted: nobody else may purge beside it, nor may
 * everybody wait for it for ever, and when it wakes it must not finish what others have done meanwhile.
 */
test("R2 of five purgers one is stopped in mid-batch and resumed and one is killed: each row goes once, whole, within the minute's rows", async () => {
  await using database = await openTestDatabase();
  const owner = postgres(database.migrationUrl, { max: 2, onnotice: () => undefined });
  const endpoint = await registerOne(database);
  await insertExpiredJobs(database, { count: EXPIRED, attempts: ATTEMPTS, endpointId: endpoint.id });
  await insertExpiredJobs(database, { count: KEPT, attempts: ATTEMPTS, endpointId: endpoint.id, callerId: "kept" });
  await holdBytes(owner);
  await owner`
    update callback_events set state = 'DEAD_LETTER', dead_letter_reason = 'BUDGET_SPENT', expires_at = null where caller_id = 'kept'`;

  const children = [startPurger(database.url, "purge-stopped"), startPurger(database.url, "purge-killed")] as const;
  const [stopped, killed] = children;
  try {
    await untilMinuteHas(database, 10);
    let gone = 0;
    for (const child of children) {
      child.go();
      gone += (await child.answer()).rows ?? 0;
    }
    expect(gone).toBe(40);
    await inMidBatch(owner, database, killed, "SIGKILL");
    await killed.end();
    await inMidBatch(owner, database, stopped, "SIGSTOP");
    const beside = await Promise.all([1, 2, 3].map(() => purgeUntilSpent(database.url)));
    stopped.go();
    stopped.signal("SIGCONT");
    expect((await stopped.answer()).fault).toMatch(/CONNECTION|terminat|timeout/i);
    expect(await stopped.answer()).toEqual({ verdict: "SPENT" });

    gone += beside.reduce((sum, { rows }) => sum + rows, 0);
    expect(gone).toBe(ROWS_PER_MINUTE);
    expect(beside.reduce((sum, { busy }) => sum + busy, 0)).toBeGreaterThan(0);
    expect(await countRows(database, "jobs")).toBe(EXPIRED + KEPT - gone);
    expect(await countRows(database, "attempts")).toBe(ATTEMPTS * (EXPIRED + KEPT - gone));
    expect(await countRows(database, "callback_events")).toBe(EXPIRED + KEPT - gone);

    await passMinute(database);
    const answer = await purge(database, "jobs", { batch: 500, rowsPerMinute: 500 });
    expect(answer).toMatchObject({ verdict: "PURGED", rows: EXPIRED - ROWS_PER_MINUTE });
    expect([await countRows(database, "jobs"), await countRows(database, "attempts")]).toEqual([KEPT, ATTEMPTS * KEPT]);
    const held = await owner`
      select 1 from jobs j join artifacts a on a.id = j.artifact_id and a.state = 'AVAILABLE' join blobs b on b.id = a.blob_id`;
    expect(held).toHaveLength(KEPT);
    const [stats] = await owner<[{ deadlocks: number }]>`
      select deadlocks::int from pg_stat_database where datname = current_database()`;
    expect(stats.deadlocks).toBe(0);
  } finally {
    for (const child of children) child.signal("SIGKILL");
    await Promise.all(children.map((child) => child.end()));
    await owner.end({ timeout: 1 });
  }
});

/** Gives all jobs one artifact. */
async function holdBytes(owner: postgres.Sql): Promise<void> {
  await owner`
    with blob as (
      insert into blobs (id, sha256, generation, size_bytes) values (uuid_v7(), ${Buffer.alloc(32)}, 'g', 1) returning id
    ),
    artifact as (
      insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
      select uuid_v7(), 'acme', id, ${Buffer.alloc(32)}, 1, 'u', 'u', 200, now() from blob returning id
    )
    update jobs set artifact_id = artifact.id from artifact`;
}

/** Lets the purger come as far as deleting attempts, where it waits for a lock, and sends it the signal there. */
async function inMidBatch(
  owner: postgres.Sql,
  database: { readonly commands: postgres.Sql },
  child: Child,
  signal: "SIGSTOP" | "SIGKILL",
): Promise<void> {
  await owner.begin(async (tx) => {
    await tx`lock table attempts in share mode`;
    child.go();
    await untilBlocked(database.commands, { application: child.name });
    child.signal(signal);
  });
}

/** Purges with a pool of its own until the minute's rows have gone. */
async function purgeUntilSpent(url: string): Promise<{ readonly rows: number; readonly busy: number }> {
  const database = createDatabase({
    url,
    applicationName: "purge-beside",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs: 5_000,
  });
  let rows = 0;
  let busy = 0;
  try {
    for (;;) {
      const answer = await purge(database, "jobs", { batch: 20, rowsPerMinute: ROWS_PER_MINUTE });
      if (answer.verdict === "SPENT") return { rows, busy };
      if (answer.verdict === "BUSY") busy += 1;
      else rows += answer.rows;
    }
  } finally {
    await database.stop(performance.now() + 1_000);
  }
}
