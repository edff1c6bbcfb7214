import { ok } from "@keble-scraper/contract";
import { revokeApiKey } from "@keble-scraper/db/commands/keys";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ID, QUEUED } from "./fixtures.ts";
import { openGateway, type OpenGateway } from "./open-gateway.ts";

let open: OpenGateway;

beforeAll(async () => {
  open = await openGateway();
  open.services.on("getJob", () => ok(QUEUED));
});
afterAll(() => open[Symbol.asyncDispose]());

const read = (key: string) => open.send("GET", `/v1/jobs/${ID}`, { key });

describe("API keys", () => {
  it("are made by operators, shown once, used at once, and refused here from the moment they are revoked", async () => {
    const key = open.operatorKey.secret;
    const body = {
      name: "ci",
      kind: "SERVICE",
      callerId: "acme",
      scopes: ["jobs:read"],
      expiresAt: "2999-01-01T00:00:00Z",
    };
    const made = await open.send("POST", "/v1/api-keys", { key, body });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      name: "ci",
      callerId: "acme",
      expiresAt: "2999-01-01T00:00:00.000Z",
      revokedAt: null,
    });
    const secret = made.body["secret"] as string;
    expect((await read(secret)).status).toBe(200);

    const listed = await open.send("GET", "/v1/api-keys?limit=1", { key });
    expect(listed.body["items"]).toMatchObject([{ id: made.body["id"] }]);
    expect(JSON.stringify(listed.body)).not.toContain(secret);
    const next = await open.send("GET", `/v1/api-keys?cursor=${listed.body["nextCursor"] as string}`, { key });
    expect(JSON.stringify(next.body)).not.toContain(made.body["id"]);
    expect((await open.send("GET", "/v1/api-keys?cursor=AAAA", { key })).status).toBe(400);

    const revoked = await open.send("DELETE", `/v1/api-keys/${made.body["id"] as string}`, { key });
    expect(revoked.status).toBe(200);
    expect(revoked.body["revokedAt"]).toMatch(/Z$/);
    expect((await read(secret)).status).toBe(401);
    expect((await open.send("DELETE", `/v1/api-keys/${ID}`, { key })).status).toBe(404);
    expect(open.log()).not.toContain(secret);
  });

  it("have audit rows that are kept for as long as the settings say", async () => {
    const key = open.operatorKey.secret;
    const body = { name: "audited", kind: "SERVICE", callerId: "acme", scopes: ["jobs:read"] };
    const id = (await open.send("POST", "/v1/api-keys", { key, body })).body["id"] as string;
    await open.send("DELETE", `/v1/api-keys/${id}`, { key });
    const rows = await open.elsewhere(
      (sql) => sql<{ action: string; hours: number }[]>`
        select action, round(extract(epoch from expires_at - occurred_at) / 3600)::int as hours
        from audit_events where subject = ${`api-key:${id}`} order by id`,
    );
    expect([...rows]).toEqual([
      { action: "api-key.created", hours: 36 },
      { action: "api-key.revoked", hours: 36 },
    ]);
  });

  it("are no service's to make, list or revoke: 403", async () => {
    expect((await open.send("POST", "/v1/api-keys", { body: {} })).status).toBe(403);
    expect((await open.send("GET", "/v1/api-keys")).status).toBe(403);
    expect((await open.send("DELETE", `/v1/api-keys/${ID}`)).status).toBe(403);
  });

  it("are not made with an end that is past: 400 names the field", async () => {
    const key = open.operatorKey.secret;
    const ask = (expiresAt: string) =>
      open.send("POST", "/v1/api-keys", { key, body: { name: "late", kind: "OPERATOR", expiresAt } });
    const refused = await ask(new Date(Date.now() - 1_000).toISOString());
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({ error: { code: "INVALID_REQUEST", details: [{ path: "expiresAt" }] } });
    expect((await ask(new Date(Date.now() + 60_000).toISOString())).status).toBe(201);
  });

  it("that have expired are refused", async () => {
    const expired = await open.makeKey({ callerId: "acme", expiresAt: new Date(Date.now() - 1_000) });
    expect((await read(expired.secret)).status).toBe(401);
  });

  it("that expire within the time they are remembered are refused when they do", async () => {
    const brief = await open.makeKey({ callerId: "acme", expiresAt: new Date(Date.now() + 700) });
    expect((await read(brief.secret)).status).toBe(200);
    await expect.poll(async () => (await read(brief.secret)).status, { timeout: 2_500, interval: 50 }).toBe(401);
  });

  it("are taken with `bearer` in any case, and by no other scheme", async () => {
    const send = (authorization: string) =>
      open.send("GET", `/v1/jobs/${ID}`, { key: null, headers: { authorization } });
    expect((await send(`bearer  ${open.serviceKey.secret}`)).status).toBe(200);
    expect((await send(`Basic ${open.serviceKey.secret}`)).status).toBe(401);
    expect((await send(open.serviceKey.secret)).status).toBe(401);
  });
});

describe("a key that another process revokes", () => {
  it("passes here for five seconds at most", async () => {
    const key = await open.makeKey({ callerId: "acme" });
    expect((await read(key.secret)).status).toBe(200);
    await open.elsewhere((sql) => revokeApiKey(sql, key.id, { actor: "system:test", requestId: null }));
    open.passTime(4_000);
    expect((await read(key.secret)).status).toBe(200);
    open.passTime(1_000);
    expect((await read(key.secret)).status).toBe(401);
  });
});

describe("while Postgres is away", () => {
  it("known keys pass, unknown ones get 503 and not 401, and all is well when it is back", async () => {
    await using away = await openGateway({ viaProxy: true });
    away.services.on("getJob", () => ok(QUEUED));
    const path = `/v1/jobs/${ID}`;
    expect((await away.send("GET", path)).status).toBe(200);
    await away.proxy.refuse();
    expect((await away.send("GET", path)).status).toBe(200);
    for (const face of [path, `/trpc/getJob?input=${encodeURIComponent(JSON.stringify({ id: ID }))}`]) {
      const stranger = await away.send("GET", face, { key: away.operatorKey.secret });
      expect(stranger.status).toBe(503);
      expect(stranger.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
      expect(JSON.stringify(stranger.body)).toContain('"code":"DEPENDENCY_UNAVAILABLE"');
      expect(JSON.stringify(stranger.body)).not.toMatch(/127\.0\.0\.1|ECONN|postgres/i);
    }
    expect((await away.send("GET", "/readyz", { key: null })).body).toMatchObject({
      status: "down",
      checks: [{ name: "database", status: "down" }, {}, {}, {}, {}, {}],
    });
    await away.proxy.restore();
    await expect
      .poll(async () => (await away.send("GET", path, { key: away.operatorKey.secret })).status, { timeout: 10_000 })
      .toBe(200);
  });

  it("and does not answer, a look-up ends within three seconds with 503, and the next one asks anew", async () => {
    await using away = await openGateway({ viaProxy: true });
    away.services.on("getJob", () => ok(QUEUED));
    const ask = () => away.send("GET", `/v1/jobs/${ID}`, { key: away.operatorKey.secret });
    expect((await away.send("GET", `/v1/jobs/${ID}`)).status).toBe(200);
    away.proxy.blackHole();
    for (let turn = 0; turn < 2; turn += 1) {
      const startedAt = performance.now();
      const answers = await Promise.all([ask(), ask()]);
      expect(performance.now() - startedAt).toBeLessThan(3_000);
      for (const { status, headers, body } of answers) {
        expect(status).toBe(503);
        expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
        expect(body).toMatchObject({ error: { code: "DEPENDENCY_UNAVAILABLE" } });
      }
    }
    // Answers that come this late are not remembered, so that only a new look-up can help.
    away.passTime(5_000);
    await away.proxy.restore();
    await expect.poll(async () => (await ask()).status, { timeout: 10_000 }).toBe(200);
  });
});
