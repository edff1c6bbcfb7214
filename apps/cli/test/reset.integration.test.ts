import { writeFileSync, utimesSync } from "node:fs";
import { KEPT_TABLES, RESET_TABLES } from "@keble-scraper/db/commands/retention";
import { S3_FAULTS } from "@keble-scraper/testkit";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openResetRig, type ResetRig } from "./reset-rig.ts";

/** Refusals change nothing, so that they may share a deployment. */
let shared: ResetRig;

beforeAll(async () => {
  shared = await openResetRig();
});
afterAll(() => shared[Symbol.asyncDispose]());

const actions = async (rig: ResetRig) =>
  (await rig.sql<{ action: string }[]>`select action from audit_events order by id`).map((row) => row.action);
const runOf = async (rig: ResetRig) =>
  (await rig.sql<{ state: string; evidence: { gone: object } }[]>`select state, evidence from reset_runs`)[0];

/** Refused by its flag, with the words, and nothing touched. */
async function expectRefused(flags: Record<string, string>, ...words: string[]): Promise<void> {
  const before = [await shared.left(), await actions(shared)];
  const error: unknown = await shared.apply(flags).catch((caught: unknown) => caught);
  expect(error).toMatchObject({ reason: "USAGE", message: expect.stringMatching(/^Nothing was touched\./) as string });
  for (const word of words) expect((error as Error).message).toContain(word);
  expect([await shared.left(), await actions(shared)]).toEqual(before);
  expect(await runOf(shared)).toBeUndefined();
}

test("O2 a reset is a dry run unless it is applied: it reports, appends its audit row, and deletes nothing", async () => {
  const before = await shared.left();
  const { report } = await shared.plan("dry");
  expect(report).toMatchObject({
    campaign: "dry",
    redis: { prefix: shared.prefix, keys: 2 },
    artifacts: { owner: "acme/main" },
    inventory: { objects: 31 },
    rows: { jobs: 30, attempts: 30, artifacts: 30, blobs: 30, object_deletions: 1, budgets: 1 },
    writers: { connections: [], leases: 0 },
  });
  expect(report.database).toMatch(new RegExp(`^${shared.database.name}@\\d+$`, "u"));
  expect(Object.keys(report.rows)).toEqual([...RESET_TABLES]);
  expect(await shared.left()).toEqual(before);
  expect(await shared.sql`select subject, details from audit_events where id = ${report.audit}`).toMatchObject([
    { subject: "reset:dry", details: { inventory: report.inventory.sha256, database: report.database, objects: 31 } },
  ]);
  const text = await shared.run(["reset"]);
  expect(text).toContain("A dry run: nothing was deleted.");
  expect(text).toContain(report.inventory.sha256);
  expect(text).not.toContain(shared.s3.secretAccessKey);
});

test("O2 every table is on the list of a reset or on the list of what stays", async () => {
  const rows = await shared.sql<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' order by 1`;
  expect([...RESET_TABLES, ...KEPT_TABLES].toSorted()).toEqual(rows.map(({ name }) => name));
  expect(KEPT_TABLES).toEqual(expect.arrayContaining(["audit_events", "reset_runs", "store_namespace", "api_keys"]));
});

test.each(["staging", "production"])("O2 a reset is never applied in %s", async (environment) => {
  const { flags } = await shared.plan();
  const before = await shared.left();
  await expect(shared.apply(flags, { SCRAPER_ENVIRONMENT: environment })).rejects.toMatchObject({
    reason: "USAGE",
    message: `--apply is for development and test, not for ${environment}. Nothing was touched.`,
  });
  expect(await shared.left()).toEqual(before);
});

const FLAGS = [
  "--campaign",
  "--writer-stop",
  "--database",
  "--redis",
  "--artifact-owner",
  "--snapshot",
  "--inventory",
  "--audit",
] as const;

test("O2 each of the eight pieces of evidence is asked for, and all that are missing are named at once", async () => {
  const { flags } = await shared.plan();
  for (const flag of FLAGS) {
    const { [flag]: _missing, ...others } = flags;
    await expectRefused(others, `${flag}: is missing`);
    await expectRefused({ ...flags, [flag]: "  " }, `${flag}: is missing`);
  }
  await expectRefused({}, ...FLAGS.map((flag) => `${flag}: is missing`));
  expect(await runOf(shared)).toBeUndefined();
});

test("O2 each of the eight pieces of evidence has to be true", async () => {
  const { flags } = await shared.plan();
  const other = await shared.plan("other");
  const [database = "", id = ""] = (flags["--database"] ?? "").split("@");
  const wrong: readonly (readonly [(typeof FLAGS)[number], string, string])[] = [
    ["--campaign", "second", "--audit: that dry run is of the campaign first"],
    ["--writer-stop", "yesterday", "--writer-stop: it must be a moment"],
    ["--writer-stop", "2026-02-30T00:00:00", "--writer-stop: it must be a moment"],
    ["--writer-stop", new Date(Date.now() + 3_600_000).toISOString(), "--writer-stop: it must be over"],
    ["--writer-stop", "2020-01-01T00:00:00Z", "--writer-stop: jobs was written to after it"],
    ["--database", database, "--database: this is"],
    ["--database", `${database}@${BigInt(id) + 1n}`, "--database: this is"],
    ["--redis", shared.prefix.slice(1, -1), "--redis: the deployment's namespace is"],
    ["--artifact-owner", "acme/other", "--artifact-owner: the database's artifacts belong to acme/main"],
    ["--snapshot", "/nowhere/snapshot", "--snapshot: it can't be read"],
    ["--snapshot", "/tmp", "--snapshot: it must be a file"],
    ["--inventory", "0".repeat(64), "--inventory: the 31 objects of now have"],
    ["--audit", "1", "--audit: there is no dry run with this id"],
    ["--audit", other.report.audit, "--audit: that dry run is of the campaign other"],
  ];
  for (const [flag, value, message] of wrong) await expectRefused({ ...flags, [flag]: value }, message);

  writeFileSync(shared.snapshot, "");
  await expectRefused(flags, "--snapshot: it is empty");
  writeFileSync(shared.snapshot, "older");
  utimesSync(shared.snapshot, new Date(0), new Date(0));
  await expectRefused(flags, "--snapshot: it was written before the writers stopped");
  expect(await runOf(shared)).toBeUndefined();
});

test("O2 whoever may write is a reason to refuse: a process of ours, the services' role, a lease, a row of since", async () => {
  const { flags } = await shared.plan();
  const ours = postgres(shared.database.migrationUrl, {
    max: 1,
    connection: { application_name: "keble-worker-fetch" },
  });
  await ours`select 1`;
  await expectRefused(flags, "--writer-stop: these may write: keble-worker-fetch (");
  await ours.end({ timeout: 1 });
  const app = postgres(shared.database.url, { max: 1, connection: { application_name: "somebody" } });
  await app`select 1`;
  await expectRefused(flags, "--writer-stop: these may write: somebody (");
  await app.end({ timeout: 1 });
  await shared.sql`
    insert into cache_flights (key, caller_id, job_id, lease_token, held_until)
    values ('\\x00', '', gen_random_uuid(), gen_random_uuid(), clock_timestamp() + interval '1 minute')`;
  await expectRefused(flags, "--writer-stop: 1 leases are not over yet");
  await shared.sql`delete from cache_flights`;
  // The objects of now are no longer those of the dry run.
  await shared.sql`insert into object_deletions (id, sha256, generation) values (gen_random_uuid(), '\\xab', '0')`;
  await expectRefused(flags, "--writer-stop: object_deletions was written to after it", "--inventory: the 32 objects");
  await shared.sql`delete from object_deletions where sha256 = '\\xab'`;
  expect(await runOf(shared)).toBeUndefined();
});

test("O2 a reset deletes objects, rows and keys, and leaves audit, keys, endpoints, the claim and other namespaces", async () => {
  await using rig = await openResetRig();
  const [namespace] = await rig.sql`select * from store_namespace`;
  const { flags } = await rig.plan();
  expect(await rig.apply(flags)).toMatch(/^first is done: 31 objects, \d+ rows, 2 keys of Redis are gone$/);
  expect(await rig.left()).toEqual({ rows: 0, keys: 0, objects: 1 });
  expect([...rig.s3.objects().keys()]).toEqual(["artifacts/owner"]);
  expect(
    await rig.redis.exists(`${rig.prefix.slice(0, -1)}2}:kept`, `${rig.prefix.slice(1, -1)}:kept`, "{other}:kept"),
  ).toBe(3);
  expect((await rig.sql`select * from store_namespace`)[0]).toEqual(namespace);
  expect(await rig.sql`select 1 from callback_endpoints`).toHaveLength(1);
  expect(await actions(rig)).toEqual(["store.claimed", "reset.planned", "reset.started", "reset.done"]);
  const [started] = await rig.sql<
    { details: object }[]
  >`select details from audit_events where action = 'reset.started'`;
  expect(started?.details).toMatchObject({
    database: flags["--database"],
    inventory: flags["--inventory"],
    audit: flags["--audit"],
    snapshot: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
  });
  expect(await runOf(rig)).toMatchObject({ state: "DONE", evidence: { gone: { objects: 31, keys: 2 } } });
  expect(await rig.apply(flags)).toBe("first is done already");
  expect(await rig.run(["migrate"])).toBe("The database is up to date");
});

// A service that somebody starts in the middle of a reset stores bytes that the listing of objects had not seen.
test("O2 what is stored while a reset runs goes too, its object before its row", async () => {
  await using rig = await openResetRig();
  const { flags } = await rig.plan();
  const sha256 = "ab".repeat(32);
  await rig.s3.plant(`artifacts/${sha256}/00000000000000ff`, Buffer.from("late"));
  await rig.sql`
    create function store_late() returns trigger language plpgsql as $$
    begin
      insert into blobs (id, sha256, generation, size_bytes)
      values (gen_random_uuid(), decode(repeat('ab', 32), 'hex'), '00000000000000ff', 4) on conflict do nothing;
      return null;
    end $$`;
  await rig.sql`create trigger store_late after delete on jobs for each statement execute function store_late()`;
  await rig.apply(flags);
  expect([...rig.s3.objects().keys()]).toEqual(["artifacts/owner"]);
  expect(await rig.left()).toMatchObject({ rows: 0, keys: 0 });
});

test("O2 a reset that breaks off at the store, in Postgres or at Redis stays RUNNING and is finished by the same command", async () => {
  await using rig = await openResetRig();
  const { flags } = await rig.plan();
  const state = async () => (await runOf(rig))?.state;

  // One object can't be deleted, all others can.
  const fault = rig.s3.fail({ operation: "DeleteObject", key: /\/0{15}5$/u, times: Infinity }, S3_FAULTS.FORBIDDEN);
  await expect(rig.apply(flags)).rejects.toMatchObject({ reason: "SERVER_MISSING" });
  fault.lift();
  expect(await state()).toBe("RUNNING");
  expect((await rig.left()).rows).toBeGreaterThan(0);
  // What was not deleted from the store still has its row.
  const held = await rig.sql<{ key: string }[]>`
    select 'artifacts/' || encode(sha256, 'hex') || '/' || generation as key from blobs
    union select 'artifacts/' || encode(sha256, 'hex') || '/' || generation from object_deletions`;
  const named = new Set(held.map(({ key }) => key));
  for (const key of rig.s3.objects().keys()) if (key !== "artifacts/owner") expect(named).toContain(key);

  await rig.sql`create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$`;
  await rig.sql`create trigger refuse before delete on jobs for each row execute function refuse()`;
  await expect(rig.apply(flags)).rejects.toThrow("refused");
  expect(await state()).toBe("RUNNING");
  expect(await rig.left()).toMatchObject({ objects: 1, keys: 2 });
  await rig.sql`drop function refuse() cascade`;

  await rig.redisProxy.refuse();
  await expect(rig.apply(flags)).rejects.toMatchObject({
    reason: "SERVER_MISSING",
    message: expect.stringMatching(/^SCRAPER_REDIS_URL: no command was answered there/) as string,
  });
  expect([await state(), (await rig.left()).rows]).toEqual(["RUNNING", 0]);
  await rig.redisProxy.restore();

  // Another campaign, or other evidence, does not take its place.
  const second = await rig.plan("second");
  await expect(rig.apply(second.flags)).rejects.toThrow("--campaign: first was begun and is not done");
  await expect(rig.apply({ ...flags, "--inventory": second.report.inventory.sha256 })).rejects.toThrow(
    "--inventory: the run that broke off was shown",
  );
  await expect(rig.apply({ ...flags, "--writer-stop": second.flags["--writer-stop"] ?? "" })).rejects.toThrow(
    "--writer-stop: the run that broke off was shown",
  );
  expect(await rig.apply(flags)).toMatch(/^first is done: 31 objects, \d+ rows, 2 keys of Redis are gone$/);
  expect(await rig.left()).toEqual({ rows: 0, keys: 0, objects: 1 });
  expect((await actions(rig)).filter((action) => action === "reset.started")).toHaveLength(1);
});

test("O2 a reset that Postgres refuses at any table, at its beginning or at its end is finished by the same command", async () => {
  await using rig = await openResetRig();
  const { flags } = await rig.plan();
  await rig.sql`
    create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'refused at % of %', lower(tg_op), tg_table_name; end $$`;
  // Attempts go with their jobs.
  const emptied = RESET_TABLES.filter((table) => table !== "attempts");
  for (const table of emptied) {
    await rig.sql`create trigger refuse before delete on ${rig.sql(table)} for each statement execute function refuse()`;
  }
  await rig.sql`create trigger refuse_begin before insert on reset_runs for each row execute function refuse()`;
  await rig.sql`
    create trigger refuse_end before update on reset_runs for each row when (new.state = 'DONE') execute function refuse()`;
  await rig.sql`
    create trigger refuse_audit before insert on audit_events for each row when (new.action = 'reset.done') execute function refuse()`;
  const triggers = new Map([
    ["insert reset_runs", "refuse_begin"],
    ["update reset_runs", "refuse_end"],
    ["insert audit_events", "refuse_audit"],
  ]);
  const refusals = new Set<string>();
  let answer: unknown;
  while (typeof answer !== "string") {
    answer = await rig.apply(flags).catch((error: unknown) => error);
    if (typeof answer === "string") break;
    const [, operation = "", table = ""] = /refused at (\w+) of (\w+)/.exec(String(answer)) ?? [];
    refusals.add(`${operation} ${table}`);
    expect((await runOf(rig))?.state).toBe(table === "reset_runs" && operation === "insert" ? undefined : "RUNNING");
    const name = triggers.get(`${operation} ${table}`) ?? "refuse";
    await rig.sql`drop trigger ${rig.sql(name)} on ${rig.sql(table)}`;
  }
  expect([...refusals].toSorted()).toEqual(
    [...triggers.keys(), ...emptied.map((table) => `delete ${table}`)].toSorted(),
  );
  expect(answer).toMatch(/^first is done: /);
  expect(await rig.left()).toEqual({ rows: 0, keys: 0, objects: 1 });
});

test("O2 of two resets at once one works, and objects of a store that is not the database's are never deleted", async () => {
  await using rig = await openResetRig();
  const { flags } = await rig.plan();
  const before = await rig.left();
  const mark = await rig.s3.bytes("artifacts/owner");
  await rig.s3.plant("artifacts/owner", mark.toString().replace("acme/main", "acme/else"));
  await expect(rig.apply(flags)).rejects.toMatchObject({
    reason: "STORE_REFUSED",
    message: expect.stringMatching(/^MARK_OF_ANOTHER_OWNER: /) as string,
  });
  expect([await rig.left(), await runOf(rig)]).toEqual([before, undefined]);
  await rig.s3.plant("artifacts/owner", mark);
  const both = await Promise.allSettled([rig.apply(flags), rig.apply(flags)]);
  expect(both.some(({ status }) => status === "fulfilled")).toBe(true);
  for (const end of both) {
    if (end.status === "rejected") expect(String(end.reason)).toContain("another reset of this database is under way");
  }
  expect(await runOf(rig)).toMatchObject({ state: "DONE" });
});
