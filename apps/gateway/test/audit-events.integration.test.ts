import { type AuditEvent, AuditPage } from "@keble-scraper/contract";
import { revokeApiKey } from "@keble-scraper/db/commands/keys";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openGateway, type OpenGateway } from "./open-gateway.ts";

let open: OpenGateway;

beforeAll(async () => {
  open = await openGateway({ viaProxy: true });
});
afterAll(() => open[Symbol.asyncDispose]());

const ask = (query = "", key = open.operatorKey.secret) => open.send("GET", `/v1/audit-events${query}`, { key });

describe("GET /v1/audit-events", () => {
  it("O5 shows operators who did what to what and for which request, newest first, over both faces", async () => {
    const made = await open.send("POST", "/v1/api-keys", {
      key: open.operatorKey.secret,
      body: { name: "audited", kind: "SERVICE", callerId: "shop", scopes: ["jobs:read"] },
      headers: { "x-request-id": "request-of-the-test" },
    });
    const id = made.body["id"] as string;
    await open.elsewhere((sql) => revokeApiKey(sql, id, { actor: "system:test", requestId: null }));
    const answer = await ask(`?subject=api-key:${id}`);
    expect(answer.status).toBe(200);
    const { items, nextCursor } = AuditPage.parse(answer.body);
    expect(nextCursor).toBe(null);
    expect(items).toMatchObject([
      {
        action: "api-key.revoked",
        actor: "system:test",
        subject: `api-key:${id}`,
        callerId: "shop",
        requestId: null,
        details: {},
      },
      {
        action: "api-key.created",
        actor: open.operatorKey.id,
        subject: `api-key:${id}`,
        callerId: "shop",
        requestId: "request-of-the-test",
        details: { name: "audited", kind: "SERVICE", scopes: "jobs:read", expiresAt: null },
      },
    ]);
    const input = encodeURIComponent(JSON.stringify({ subject: `api-key:${id}` }));
    const typed = await open.send("GET", `/trpc/listAuditEvents?input=${input}`, { key: open.operatorKey.secret });
    expect(typed.body).toEqual({ result: { data: answer.body } });
  });

  it("gives a page, and the next one by its cursor", async () => {
    await open.makeKey({ callerId: "paged" });
    await open.makeKey({ callerId: "paged" });
    const first = AuditPage.parse((await ask("?callerId=paged&limit=1")).body);
    const second = AuditPage.parse((await ask(`?callerId=paged&limit=1&cursor=${first.nextCursor ?? ""}`)).body);
    expect(first.items).toHaveLength(1);
    expect(second.nextCursor).toBe(null);
    const [newer, older] = [...first.items, ...second.items] as [AuditEvent, AuditEvent];
    expect(newer.id > older.id).toBe(true);
    expect((await ask("?callerId=paged&occurredAfter=2999-01-01T00:00:00Z")).body).toEqual({
      items: [],
      nextCursor: null,
    });
  });

  it("is for operators alone: 403 to a service whatever its scopes, 401 without a key", async () => {
    const denied = await open.send("GET", "/v1/audit-events?limit=0");
    expect(denied.status).toBe(403);
    expect(denied.body).toMatchObject({ error: { details: [{ message: "This needs an operator's key." }] } });
    expect((await open.send("GET", "/v1/audit-events", { key: null })).status).toBe(401);
  });

  it.each([
    ["limit", "0"],
    ["limit", "201"],
    ["cursor", "AAAA"],
    ["action", "Not%20an%20action"],
    ["callerId", "a%20b"],
    ["subject", "a%00"],
    ["actor", "%00"],
    ["occurredAfter", "yesterday"],
    ["caller", "acme"],
  ])("refuses %s=%s with 400, and names it", async (name, value) => {
    const answer = await ask(`?${name}=${value}`);
    expect(answer.status).toBe(400);
    expect(answer.body).toMatchObject({ error: { code: "INVALID_REQUEST", details: [{ path: name }] } });
  });

  it("answers 503 with Retry-After while Postgres is away", async () => {
    expect((await ask()).status).toBe(200);
    await open.proxy.refuse();
    const answer = await ask();
    expect(answer.status).toBe(503);
    expect(answer.headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(answer.body).toMatchObject({ error: { code: "DEPENDENCY_UNAVAILABLE" } });
    await open.proxy.restore();
  });
});
