import { v7 as uuidv7 } from "uuid";
import { afterAll, expect, test } from "vitest";
import { putPin } from "../src/commands/artifacts/index.ts";
import { listPins, readOwnerCursor } from "../src/queries/list-pins.ts";
import { isDeletedByReview, review, stateOf, storeArtifact } from "./artifact-fixtures.ts";
import { openTestDatabase } from "./job-fixtures.ts";

const database = await openTestDatabase();
const sql = database.commands;
afterAll(() => database[Symbol.asyncDispose]());

const BY = { actor: uuidv7(), requestId: "request-1" };
const FUTURE = new Date("2999-01-01T00:00:00.123Z");
const PAST = new Date("2020-01-01T00:00:00Z");

type Wish = { owner?: string; callerId?: string | null };
const put = (artifactId: string, retentionRevision: number, expiresAt: Date | null, wish: Wish = {}) =>
  putPin(sql, { artifactId, callerId: "acme", owner: "orders", retentionRevision, expiresAt, ...wish }, BY);

async function pinCount(id: string): Promise<number> {
  const [row] = await sql<[{ pin_count: number }]>`select pin_count from artifacts where id = ${id}`;
  return row.pin_count;
}

async function audited(id: string): Promise<string[]> {
  const rows = await sql<{ line: string }[]>`
    select action || ' ' || (details ->> 'retentionRevision') as line from audit_events
    where subject = ${`artifact:${id}`} order by occurred_at, id`;
  return rows.map((row) => row.line);
}

test("A8 a newer revision replaces the policy, an older one is ignored, and only what applied is audited", async () => {
  const { id } = await storeArtifact(database);
  expect(await put(id, 2, null)).toMatchObject({ ok: true, value: { applied: true, pin: { expiresAt: null } } });
  expect(await put(id, 5, FUTURE)).toMatchObject({
    ok: true,
    value: {
      applied: true,
      pin: { artifactId: id, owner: "orders", retentionRevision: 5, expiresAt: FUTURE.toJSON() },
    },
  });
  const stale = await put(id, 4, null);
  expect(stale).toMatchObject({
    ok: true,
    value: { applied: false, pin: { retentionRevision: 5, expiresAt: FUTURE.toJSON() } },
  });
  expect(await audited(id)).toEqual(["artifact.pinned 2", "artifact.pinned 5"]);
  const [row] =
    await sql`select caller_id, actor, request_id, details from audit_events where subject = ${`artifact:${id}`} order by id limit 1`;
  expect(row).toEqual({
    caller_id: "acme",
    actor: BY.actor,
    request_id: "request-1",
    details: { owner: "orders", retentionRevision: 2, expiresAt: null },
  });
});

test("A8 the same revision again changes nothing; with another expiry, by the millisecond, it conflicts", async () => {
  const { id } = await storeArtifact(database);
  await put(id, 3, FUTURE);
  expect(await put(id, 3, new Date(FUTURE))).toMatchObject({ ok: true, value: { applied: false } });
  for (const other of [new Date(FUTURE.getTime() + 1), null, PAST]) {
    expect(await put(id, 3, other)).toMatchObject({ ok: false, failure: { code: "CONFLICT" } });
  }
  await put(id, 4, null);
  expect(await put(id, 4, null)).toMatchObject({ ok: true, value: { applied: false } });
  expect(await put(id, 4, FUTURE)).toMatchObject({ ok: false, failure: { code: "CONFLICT" } });
  expect(await put(id, 3, PAST)).toMatchObject({ ok: true, value: { applied: false } });
  expect(await audited(id)).toEqual(["artifact.pinned 3", "artifact.pinned 4"]);
});

test("A8 revisions reach 2^53-1, where only the same one is not older", async () => {
  const { id } = await storeArtifact(database);
  const last = Number.MAX_SAFE_INTEGER;
  expect(await put(id, last - 1, null)).toMatchObject({ ok: true, value: { applied: true } });
  expect(await put(id, last, FUTURE)).toMatchObject({
    ok: true,
    value: { applied: true, pin: { retentionRevision: last } },
  });
  expect(await put(id, last - 1, null)).toMatchObject({
    ok: true,
    value: { applied: false, pin: { retentionRevision: last } },
  });
  expect(await put(id, last, null)).toMatchObject({ ok: false, failure: { code: "CONFLICT" } });
  const page = await listPins(database.reads, { artifactId: id, afterOwner: null, limit: 10 });
  expect(page.items).toMatchObject([{ retentionRevision: last }]);
});

test("A8 a release is a newer revision whose expiry has passed, and it is remembered", async () => {
  const { id } = await storeArtifact(database);
  await put(id, 1, null);
  expect(await isDeletedByReview(database, id)).toBe(false);
  expect(await put(id, 2, new Date("0001-01-01T00:00:00Z"))).toMatchObject({
    ok: true,
    value: { applied: true, pin: { expiresAt: "0001-01-01T00:00:00.000Z" } },
  });
  expect(await put(id, 1, null)).toMatchObject({ ok: true, value: { applied: false, pin: { retentionRevision: 2 } } });
  expect(await audited(id)).toEqual(["artifact.pinned 1", "artifact.pin-released 2"]);
  // The pin put the review off for ever; the release alone brings it back.
  await review(database);
  expect(await stateOf(database, id)).toEqual({ state: "DELETED", blob: null });
});

test("A8 a pin that is given an end holds until then and no longer", async () => {
  const { id } = await storeArtifact(database);
  await put(id, 1, null);
  await review(database);
  await put(id, 2, new Date(Date.now() + 10_000));
  await review(database);
  expect(await stateOf(database, id)).toMatchObject({ state: "AVAILABLE" });
  const [due] = await sql<[{ ms: number }]>`
    select (extract(epoch from review_at - clock_timestamp()) * 1000)::float8 as ms from artifacts where id = ${id}`;
  expect(due.ms).toBeLessThanOrEqual(11_000);
  await sql`update artifact_pins set expires_at = clock_timestamp() - interval '1 ms' where artifact_id = ${id}`;
  expect(await isDeletedByReview(database, id)).toBe(true);
});

test("A2 the first pin of an owner raises the count, and nothing else does; the count holds nothing", async () => {
  const { id } = await storeArtifact(database);
  await Promise.all([1, 1, 2, 3].map((revision) => put(id, revision, null)));
  expect(await pinCount(id)).toBe(1);
  await put(id, 1, PAST, { owner: "search" });
  expect(await pinCount(id)).toBe(2);
  await put(id, 4, PAST);
  expect(await pinCount(id)).toBe(2);
  expect(await isDeletedByReview(database, id)).toBe(true);
});

test("an artifact of another caller is not found, an operator's pin is any caller's, a deleted one is gone", async () => {
  const { id } = await storeArtifact(database);
  expect(await put(id, 1, null, { callerId: "other" })).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(await put(uuidv7(), 1, null)).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(await put(id, 1, PAST, { callerId: null })).toMatchObject({ ok: true });
  expect(await isDeletedByReview(database, id)).toBe(true);
  for (const revision of [1, 2]) {
    expect(await put(id, revision, null)).toMatchObject({ ok: false, failure: { code: "GONE" } });
  }
  expect(await put(id, 2, null, { callerId: "other" })).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  expect(await audited(id)).toEqual(["artifact.pin-released 1"]);
});

test("twenty revisions at once, in any order: the newest stands, and each that applied is audited", async () => {
  const { id } = await storeArtifact(database);
  const revisions = Array.from({ length: 20 }, (_, index) => index + 1).toSorted(() => Math.random() - 0.5);
  const answers = await Promise.all(
    revisions.map((revision) => put(id, revision, new Date(FUTURE.getTime() + revision))),
  );
  const applied = answers.filter((answer) => answer.ok && answer.value.applied).length;
  const page = await listPins(database.reads, { artifactId: id, afterOwner: null, limit: 10 });
  expect(page.items).toMatchObject([{ retentionRevision: 20, expiresAt: new Date(FUTURE.getTime() + 20).toJSON() }]);
  expect(await audited(id)).toHaveLength(applied);
});

test("pins are listed by owner, page by page, released ones too", async () => {
  const { id } = await storeArtifact(database);
  const owners = ["a", "B", "b.2", "c:3", "z-9"];
  for (const owner of owners) await put(id, 1, owner === "c:3" ? PAST : null, { owner });
  const seen: string[] = [];
  let afterOwner: string | null = null;
  do {
    const page = await listPins(database.reads, { artifactId: id, afterOwner, limit: 2 });
    seen.push(...page.items.map((pin) => pin.owner));
    const after = readOwnerCursor(page.nextCursor ?? undefined);
    if (!after.ok) throw new Error("our own cursor was refused");
    afterOwner = after.value;
  } while (afterOwner !== null);
  expect(seen.toSorted()).toEqual(owners.toSorted());
  for (const cursor of [
    "####",
    Buffer.from("no spaces").toString("base64url"),
    `${Buffer.from("ab").toString("base64url")}=`,
  ]) {
    expect(readOwnerCursor(cursor), cursor).toMatchObject({ ok: false, failure: { details: [{ path: "cursor" }] } });
  }
});
