import { createHash } from "node:crypto";
import { ApiKey, CreatedApiKey } from "@keble-scraper/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  bootstrapOperatorKey,
  createApiKey,
  hashApiKey,
  type NewApiKey,
  revokeApiKey,
} from "../src/commands/keys/index.ts";
import { findApiKeyByHash, listApiKeys, parseCursor } from "../src/index.ts";
import { openTestDatabase } from "./job-fixtures.ts";

const BY = { actor: "system:test", requestId: "req-1" };
const SERVICE: NewApiKey = {
  name: "shop",
  kind: "SERVICE",
  callerId: "acme",
  scopes: ["jobs:read", "jobs:write"],
  expiresAt: null,
};
const OPERATOR: NewApiKey = { name: "ops", kind: "OPERATOR", callerId: null, scopes: [], expiresAt: null };

let database: Awaited<ReturnType<typeof openTestDatabase>>;

beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

const audit = async (id: string) =>
  database.commands<{ action: string; actor: string; caller_id: string | null; request_id: string; details: object }[]>`
    select action, actor, caller_id, request_id, details from audit_events where subject = ${`api-key:${id}`} order by id`;

describe("createApiKey", () => {
  it("shows a secret of 32 random bytes once and stores only its SHA-256", async () => {
    const made = await createApiKey(database.commands, SERVICE, BY);
    expect(CreatedApiKey.parse(made)).toEqual(made);
    expect(made.secret).toMatch(/^ks_live_[A-Za-z0-9_-]{43}$/);
    const [row] = await database.commands`select * from api_keys where id = ${made.id}`;
    expect(row!["key_sha256"]).toEqual(createHash("sha256").update(made.secret).digest());
    expect(JSON.stringify(row)).not.toContain(made.secret.slice(8));
    const other = await createApiKey(database.commands, SERVICE, BY);
    expect(other.secret).not.toBe(made.secret);
  });

  it("O5 appends the audit row of a new key in its transaction, without the secret", async () => {
    const made = await createApiKey(database.commands, SERVICE, BY);
    const rows = await audit(made.id);
    expect(rows).toEqual([
      {
        action: "api-key.created",
        actor: "system:test",
        caller_id: "acme",
        request_id: "req-1",
        details: { name: "shop", kind: "SERVICE", scopes: "jobs:read jobs:write", expiresAt: null },
      },
    ]);
    // The audit refuses a retention that overflows its clock: then there must be no key either.
    const before = await listApiKeys(database.reads, { limit: 200, afterId: null });
    await expect(createApiKey(database.commands, SERVICE, BY, 2_000_000_000)).rejects.toMatchObject({ code: "22008" });
    expect(await listApiKeys(database.reads, { limit: 200, afterId: null })).toEqual(before);
  });
});

describe("bootstrapOperatorKey", () => {
  it("makes one key however many ask at once, audited, and names it to the others", async () => {
    await using fresh = await openTestDatabase();
    const asked = Array.from({ length: 8 }, (_, n) => bootstrapOperatorKey(fresh.commands, `first-${n}`, BY, 0.5));
    const answers = await Promise.all(asked);
    const made = answers.flatMap((answer) => (answer.state === "CREATED" ? [CreatedApiKey.parse(answer.key)] : []));
    expect(made).toHaveLength(1);
    expect(made[0]).toMatchObject({ kind: "OPERATOR", callerId: null, expiresAt: null });
    const found = answers.flatMap((answer) => (answer.state === "IN_USE" ? [ApiKey.parse(answer.key).id] : []));
    expect(found).toEqual(Array.from({ length: 7 }, () => made[0]?.id));
    const rows = await fresh.commands<{ subject: string; hours: number }[]>`
      select subject, round(extract(epoch from expires_at - occurred_at) / 3600)::int as hours from audit_events`;
    expect([...rows]).toEqual([{ subject: `api-key:${made[0]?.id}`, hours: 12 }]);
  });

  it("passes over keys of services, and operators' that are revoked or have expired by the database's clock", async () => {
    await using fresh = await openTestDatabase();
    await createApiKey(fresh.commands, SERVICE, BY);
    const expired = await createApiKey(fresh.commands, OPERATOR, BY);
    const revoked = await createApiKey(fresh.commands, OPERATOR, BY);
    expect(await bootstrapOperatorKey(fresh.commands, "first", BY)).toMatchObject({ state: "IN_USE" });
    await revokeApiKey(fresh.commands, revoked.id, BY);
    await fresh.commands`update api_keys set expires_at = clock_timestamp() + interval '1 min' where id = ${expired.id}`;
    expect(await bootstrapOperatorKey(fresh.commands, "first", BY)).toMatchObject({ key: { id: expired.id } });
    await fresh.commands`update api_keys set expires_at = clock_timestamp() where id = ${expired.id}`;
    expect(await bootstrapOperatorKey(fresh.commands, "first", BY)).toMatchObject({ state: "CREATED" });
  });
});

describe("findApiKeyByHash", () => {
  it("finds the principal of a live key", async () => {
    const made = await createApiKey(database.commands, SERVICE, BY);
    expect(await findApiKeyByHash(database.commands, hashApiKey(made.secret))).toEqual({
      principal: { keyId: made.id, kind: "SERVICE", callerId: "acme", scopes: ["jobs:read", "jobs:write"] },
      expiresInMs: null,
    });
    const operator = await createApiKey(database.commands, OPERATOR, BY);
    expect(await findApiKeyByHash(database.commands, hashApiKey(operator.secret))).toMatchObject({
      principal: { keyId: operator.id, kind: "OPERATOR", callerId: null, scopes: [] },
    });
  });

  it("finds nobody by another key's text", async () => {
    expect(await findApiKeyByHash(database.commands, hashApiKey("ks_live_nobody"))).toBeNull();
  });

  it("tells how long a key has left, and finds nobody once it expired", async () => {
    const soon = await createApiKey(database.commands, { ...SERVICE, expiresAt: new Date(Date.now() + 60_000) }, BY);
    const live = await findApiKeyByHash(database.commands, hashApiKey(soon.secret));
    expect(live!.expiresInMs).toBeGreaterThan(50_000);
    expect(live!.expiresInMs).toBeLessThanOrEqual(60_010);
    await database.commands`update api_keys set expires_at = clock_timestamp() - interval '1 ms' where id = ${soon.id}`;
    expect(await findApiKeyByHash(database.commands, hashApiKey(soon.secret))).toBeNull();
  });

  it("takes an expiry of any age a date can have", async () => {
    const ancient = await createApiKey(
      database.commands,
      { ...SERVICE, expiresAt: new Date("0000-01-01T00:00:00Z") },
      BY,
    );
    expect(await findApiKeyByHash(database.commands, hashApiKey(ancient.secret))).toBeNull();
  });
});

describe("revokeApiKey", () => {
  it("O5 ends a key at once and audits it once, however often it is asked", async () => {
    const made = await createApiKey(database.commands, SERVICE, BY);
    const answers = await Promise.all([1, 2, 3, 4].map(() => revokeApiKey(database.commands, made.id, BY)));
    expect(await findApiKeyByHash(database.commands, hashApiKey(made.secret))).toBeNull();
    const times = answers.map((answer) => (answer.ok ? ApiKey.parse(answer.value).revokedAt : null));
    expect(new Set(times).size).toBe(1);
    expect(times[0]).not.toBeNull();
    expect((await audit(made.id)).map((row) => row.action)).toEqual(["api-key.created", "api-key.revoked"]);
  });

  it("does not end a key whose audit row can't be written", async () => {
    const made = await createApiKey(database.commands, SERVICE, BY);
    await expect(revokeApiKey(database.commands, made.id, BY, 2_000_000_000)).rejects.toMatchObject({ code: "22008" });
    expect(await findApiKeyByHash(database.commands, hashApiKey(made.secret))).not.toBeNull();
  });

  it("answers NOT_FOUND for a key that never was", async () => {
    const answer = await revokeApiKey(database.commands, "01900000-0000-7000-8000-000000000000", BY);
    expect(answer).toMatchObject({ ok: false, failure: { code: "NOT_FOUND" } });
  });
});

describe("listApiKeys", () => {
  it("pages all keys newest first, each once", async () => {
    for (let made = 0; made < 5; made += 1) await createApiKey(database.commands, OPERATOR, BY);
    const all = await listApiKeys(database.reads, { limit: 200, afterId: null });
    expect(all.nextCursor).toBeNull();
    const paged: string[] = [];
    for (let afterId: string | null = null; ;) {
      const page = await listApiKeys(database.reads, { limit: 3, afterId });
      paged.push(...page.items.map((key) => key.id));
      if (page.nextCursor === null) break;
      afterId = parseCursor(page.nextCursor);
    }
    expect(paged).toEqual(all.items.map((key) => key.id));
    expect(paged).toEqual(paged.toSorted().toReversed());
    for (const key of all.items) expect(ApiKey.parse(key)).toEqual(key);
  });
});
