import { listRouteSpend, listAttempts, listHostHolds, listQuarantines } from "@keble-scraper/db";
import { quarantineRoute, releaseRoute } from "@keble-scraper/db/commands/fetching";
import { page, redirect, startConnectProxy, startOrigin, startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, test } from "vitest";
import { type FetchRig, openFetchRig, untilEnded } from "./worker-fixtures.ts";

const ZONE = { userName: "brd-customer-c1-zone-z1", password: "zone-password" };
const CAP = { costCapMicros: 10_000_000 };

/** A worker whose DATACENTER leaves by a real CONNECT proxy, in Bright Data's dialect, which leads to the rig's origin. */
async function openProxyRig(env: Record<string, string> = {}, password = ZONE.password) {
  const rig = await openFetchRig();
  const proxy = await startConnectProxy({ to: rig.origin.port, dialect: "BRIGHT_DATA", credentials: ZONE });
  const start = () =>
    rig.startWorker({
      env: {
        SCRAPER_DATACENTER_PROXY_URL: proxy.url({ ...ZONE, password }),
        SCRAPER_DATACENTER_PROXY_PROVIDER: "BRIGHT_DATA",
        ...env,
      },
    });
  return {
    rig,
    proxy,
    start,
    async [Symbol.asyncDispose]() {
      await rig[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

async function attemptsOf(rig: FetchRig, jobId: string) {
  return (await listAttempts(rig.database.reads, { jobId, afterId: null, limit: 50 })).items;
}

test("W3 an attempt by a proxy costs what its socket carried, within what was reserved, and the day's budget says so", async () => {
  await using made = await openProxyRig();
  const { rig, proxy } = made;
  await made.start();
  rig.origin.on("/page", page("x".repeat(50_000)));
  const id = await rig.submit("/page", { routes: ["DATACENTER"], ...CAP });
  const job = await untilEnded(rig, id);
  expect(job).toMatchObject({ status: "SUCCEEDED", result: { route: "DATACENTER" } });
  const [attempt] = await attemptsOf(rig, id);
  // 600,000 micro-USD a gigabyte.
  const cost = Math.ceil((proxy.bytes() * 600_000) / 1e9);
  expect(attempt).toMatchObject({ outcome: "SUCCEEDED", route: "DATACENTER", costMicros: cost });
  expect(attempt?.costReservedMicros).toBe(Math.ceil(((10_000_000 + 200_000 + 327_680) * 600_000) / 1e9));
  expect(job.limits.costMicros).toBe(cost);
  const spend = await listRouteSpend(rig.database.commands);
  expect(JSON.stringify(spend)).toContain(`"settledMicros":${cost}`);
  expect(JSON.stringify(spend)).not.toContain('"settledMicros":0');
});

test("W4 a wrong password closes the route: its job goes on by the next listed route, and others do not try it", async () => {
  await using made = await openProxyRig({}, "wrong");
  const { rig, proxy } = made;
  await made.start();
  rig.origin.on("/page", page("page"));
  const first = await rig.submit("/page", { routes: ["DATACENTER", "DIRECT"], ...CAP });
  expect(await untilEnded(rig, first)).toMatchObject({
    status: "SUCCEEDED",
    result: { route: "DIRECT" },
    limits: { attemptsUsed: 2 },
  });
  expect(await attemptsOf(rig, first)).toMatchObject([
    {
      outcome: "FAILED",
      route: "DATACENTER",
      failure: { code: "PROVIDER_AUTH", origin: "PAID_EGRESS", action: "FIX_CREDENTIALS" },
    },
    { outcome: "SUCCEEDED", route: "DIRECT" },
  ]);
  expect(await listQuarantines(rig.database.commands)).toMatchObject([
    { route: "DATACENTER", reason: "PROVIDER_AUTH" },
  ]);
  const asked = proxy.asked.length;
  const second = await rig.submit("/page", { routes: ["DATACENTER", "DIRECT"], ...CAP });
  expect(await untilEnded(rig, second)).toMatchObject({ result: { route: "DIRECT" }, limits: { attemptsUsed: 1 } });
  expect(proxy.asked).toHaveLength(asked);
});

test("W4 a job goes on by its next route when it is due, not when its worker polls", async () => {
  await using rig = await openFetchRig();
  await using api = await startUnlockerApi();
  rig.origin.on("/page", page("page"));
  const id = await rig.submit("/page", { routes: ["UNLOCKER", "DIRECT"], ...CAP });
  api.always({ script: { status: 401, body: "Auth method is not supported" } });
  // It looks once as it starts, and then for ten minutes not by itself.
  await rig.startWorker({ env: { ...unlockerEnv(api), SCRAPER_POLL_INTERVAL_SECONDS: "600" } });
  expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED", result: { route: "DIRECT" } });
});

test("W4 a job whose only route is quarantined waits with its attempt, and runs once the route is released", async () => {
  await using made = await openProxyRig();
  const { rig } = made;
  const by = { actor: "test", requestId: null };
  await quarantineRoute(rig.database.commands, {
    route: "DATACENTER",
    reason: "OPERATOR",
    nativeCode: null,
    note: null,
    forMs: null,
    by,
  });
  await made.start();
  rig.origin.on("/page", page("page"));
  const waiting = await rig.submit("/page", { routes: ["DATACENTER"], ...CAP });
  const other = await rig.submit("/page");
  expect(await untilEnded(rig, other)).toMatchObject({ status: "SUCCEEDED" });
  expect(await rig.read(waiting)).toMatchObject({ finishedAt: null, limits: { attemptsUsed: 0 } });
  await releaseRoute(rig.database.commands, { route: "DATACENTER", by });
  expect(await untilEnded(rig, waiting)).toMatchObject({ status: "SUCCEEDED", result: { route: "DATACENTER" } });
});

test("W4 a blocked answer goes on by the next route, and its page is kept as the attempt's evidence", async () => {
  await using made = await openProxyRig();
  const { rig } = made;
  await made.start();
  const wall = "<!doctype html><title>Just a moment...</title><p>Checking your browser";
  let visits = 0;
  rig.origin.on("/page", (reply) => {
    visits += 1;
    return visits === 1
      ? reply.send({
          status: 403,
          reason: "Forbidden",
          headers: { "cf-mitigated": "challenge", Server: "cloudflare", "Content-Type": "text/html" },
          body: wall,
        })
      : reply.send({ body: "page" });
  });
  const id = await rig.submit("/page", { routes: ["DIRECT", "DATACENTER"], ...CAP });
  expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED", result: { route: "DATACENTER" } });
  const [blocked, passed] = await attemptsOf(rig, id);
  expect(blocked).toMatchObject({ outcome: "FAILED", httpStatus: 403, failure: { code: "BLOCKED" } });
  expect(passed).toMatchObject({ outcome: "SUCCEEDED", evidenceArtifactId: null });
  const [evidence] = await rig.database.commands`
    select size_bytes::int as size, http_status, content_type, state from artifacts where id = ${blocked?.evidenceArtifactId ?? null}`;
  expect(evidence).toMatchObject({
    size: wall.length,
    http_status: 403,
    content_type: "text/html",
    state: "AVAILABLE",
  });
});

test("W2 a target's Retry-After holds its host as a row, no longer than the setting, and its own job for all of it", async () => {
  await using rig = await openFetchRig();
  await rig.startWorker({ env: { SCRAPER_HOST_HOLD_SECONDS_MAX: "20" } });
  rig.origin.on("/page", (reply) =>
    reply.send({ status: 503, reason: "Busy", headers: { "Retry-After": "50" }, body: "busy" }),
  );
  const id = await rig.submit("/page", { deadlineSeconds: 600 });
  await expect.poll(() => rig.ledger(id), { timeout: 10_000, interval: 10 }).toEqual(["FAILED"]);
  const [hold] = await listHostHolds(rig.database.commands, [`127.0.0.1:${rig.origin.port}`]);
  expect(hold?.remainingMs).toBeGreaterThan(10_000);
  expect(hold?.remainingMs).toBeLessThanOrEqual(20_000);
  const { status, dueAt, createdAt } = await rig.read(id);
  expect(status).toBe("WAITING");
  expect(Date.parse(dueAt) - Date.parse(createdAt)).toBeGreaterThanOrEqual(50_000);
});

test("W5 jobs of one sticky key share an exit, until a block makes the next attempt come out elsewhere", async () => {
  await using made = await openProxyRig();
  const { rig, proxy } = made;
  await made.start();
  rig.origin.on("/page", page("page"));
  const sticky = { routes: ["DATACENTER"], egress: { stickyKey: "cart-42" }, ...CAP };
  const sessions = () => proxy.asked.map(({ parameters }) => parameters["session"]);
  await untilEnded(rig, await rig.submit("/page", sticky));
  await untilEnded(rig, await rig.submit("/page", sticky));
  const [first, second] = sessions();
  expect(first).toMatch(/^[a-z0-9]{8,32}$/u);
  expect(second).toBe(first);
  await untilEnded(rig, await rig.submit("/page", { ...sticky, egress: { stickyKey: "cart-43" } }));
  await untilEnded(rig, await rig.submit("/page", sticky, "another caller"));
  expect(new Set(sessions()).size).toBe(3);
  rig.origin.on("/page", (reply) =>
    reply.send({ status: 403, reason: "Forbidden", headers: { "cf-mitigated": "challenge" }, body: "wall" }),
  );
  await untilEnded(rig, await rig.submit("/page", sticky));
  rig.origin.on("/page", page("page"));
  await untilEnded(rig, await rig.submit("/page", sticky));
  const [blocked, after] = sessions().slice(-2);
  expect(blocked).toBe(first);
  expect(after).not.toBe(first);
});

test("W3 a cap that settled spend has filled ends the job as COST_CAP_EXCEEDED, without an attempt, or sends it by its next route", async () => {
  await using rig = await openFetchRig();
  await using api = await startUnlockerApi({ originPort: rig.origin.port });
  rig.origin.on("/page", page("page"));
  await rig.startWorker({ env: { ...unlockerEnv(api), SCRAPER_UNLOCKER_DAILY_CAP_MICROS: "3000" } });
  for (const expected of ["SUCCEEDED", "SUCCEEDED", "FAILED"]) {
    const job = await untilEnded(rig, await rig.submit("/page", { routes: ["UNLOCKER"], ...CAP }));
    expect(job.status).toBe(expected);
  }
  const refused = await untilEnded(rig, await rig.submit("/page", { routes: ["UNLOCKER"], ...CAP }));
  expect(refused).toMatchObject({ failure: { code: "COST_CAP_EXCEEDED" }, limits: { attemptsUsed: 0 } });
  const onward = await untilEnded(rig, await rig.submit("/page", { routes: ["UNLOCKER", "DIRECT"], ...CAP }));
  expect(onward).toMatchObject({ status: "SUCCEEDED", result: { route: "DIRECT" }, limits: { attemptsUsed: 1 } });
  const poor = await untilEnded(rig, await rig.submit("/page", { routes: ["UNLOCKER"], costCapMicros: 1_499 }));
  expect(poor).toMatchObject({ failure: { code: "COST_CAP_EXCEEDED" } });
  expect(api.requests).toHaveLength(2);
});

test("O4 a drain gives back what was reserved for an attempt that sent nothing", async () => {
  await using rig = await openFetchRig();
  await using api = await startUnlockerApi();
  const worker = await rig.startWorker({ env: { ...unlockerEnv(api), SCRAPER_UNLOCKER_REQUESTS_PER_SECOND: "0.25" } });
  api.always({ page: { body: "page" } });
  await untilEnded(rig, await rig.submit("/a", { routes: ["UNLOCKER"], ...CAP }));
  const reserved = async () => {
    const [row] = await rig.database
      .commands`select sum(reserved_micros)::int as micros from budgets where scope = 'CALLER'`;
    return row?.["micros"] as number;
  };
  // Its turn is four seconds away.
  const id = await rig.submit("/b", { routes: ["UNLOCKER"], ...CAP });
  await expect.poll(reserved, { timeout: 10_000, interval: 5 }).toBeGreaterThan(0);
  await worker.stop(0);
  expect(await rig.read(id)).toMatchObject({ finishedAt: null, limits: { attemptsUsed: 0 } });
  expect(await reserved()).toBe(0);
  expect(api.requests).toHaveLength(1);
});

describe("W4 each of a supplier's failures has its own code and disposition, and none is the target's fault", () => {
  const html = { status: 200, headers: { "content-type": "text/html" }, body: "<html>portal</html>" };
  const refusal = (code: string) => ({ refusal: { code, status: 403, header: "x-brd-err-code" } }) as const;
  // Its account's own troubles quarantine the route; what can't help is not tried again.
  const account = { quarantined: 1, tries: 1 };
  const request = { quarantined: 0, tries: 1 };
  const passing = { quarantined: 0, tries: 2 };
  type Prepare = (api: Awaited<ReturnType<typeof startUnlockerApi>>) => void;
  test.each<[string, string, typeof account, Prepare]>([
    [
      "a wrong key",
      "PROVIDER_AUTH",
      account,
      (api) => api.always({ script: { status: 401, body: "Auth method is not supported" } }),
    ],
    ["a suspended account", "PROVIDER_PAYMENT", account, (api) => void (api.account.status = "suspended")],
    ["a spent zone", "PROVIDER_QUOTA", account, (api) => api.always(refusal("client_10100"))],
    ["a policy's refusal", "PROVIDER_POLICY", request, (api) => api.always(refusal("policy_20050"))],
    ["an empty 200", "PROVIDER_POLICY", request, (api) => api.always({ script: { status: 200, body: "" } })],
    ["HTML from a portal", "PROVIDER_FAILURE", request, (api) => api.always({ script: html })],
    ["its own 503", "PROVIDER_CAPACITY", passing, (api) => api.always({ script: { status: 503, body: "busy" } })],
    ["a cut connection", "PROVIDER_FAILURE", passing, (api) => api.always({ script: "RESET" })],
  ])("%s is %s", async (_what, code, { quarantined, tries }, prepare) => {
    await using rig = await openFetchRig();
    await using api = await startUnlockerApi();
    prepare(api);
    await rig.startWorker({ env: unlockerEnv(api) });
    const id = await rig.submit("/page", { routes: ["UNLOCKER"], attemptBudget: 2, ...CAP });
    const job = await untilEnded(rig, id);
    expect(job).toMatchObject({ status: "FAILED", failure: { code, origin: "PAID_EGRESS" } });
    expect(await listQuarantines(rig.database.commands)).toHaveLength(quarantined);
    expect(await attemptsOf(rig, id)).toHaveLength(tries);
  });
});

test("J3 an attempt that meets a held host at a later hop is handed back uncounted, due when the hold ends, and starts anew", async () => {
  await using rig = await openFetchRig();
  await using other = await startOrigin();
  const hosts = [rig.origin, other].map(({ port }) => `127.0.0.1:${port}`);
  await rig.startWorker({
    env: { SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: hosts.join(","), SCRAPER_HTTP_ATTEMPT_SECONDS: "1" },
  });
  rig.origin.on("/moved", redirect(`http://${hosts[1] ?? ""}/page`));
  other.on("/page", page("page"));
  await rig.database.commands`
    insert into host_holds (host_key, held_until) values (${hosts[1] ?? ""}, clock_timestamp() + interval '4 s')`;
  const heldAt = performance.now();
  const id = await rig.submit("/moved", { deadlineSeconds: 600 });
  await expect.poll(() => rig.ledger(id), { timeout: 10_000, interval: 10 }).toEqual(["HANDED_BACK"]);
  expect(await rig.read(id)).toMatchObject({ status: "WAITING", limits: { attemptsUsed: 0 } });
  expect(other.requests).toHaveLength(0);
  expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  // The insert was a moment before.
  expect(performance.now() - heldAt).toBeGreaterThan(3_500);
  expect(rig.origin.requests).toHaveLength(2);
});

function unlockerEnv(api: { readonly url: string; readonly apiKey: string; readonly zone: string }) {
  return {
    SCRAPER_UNLOCKER_URL: api.url,
    SCRAPER_UNLOCKER_API_KEY: api.apiKey,
    SCRAPER_UNLOCKER_ZONE: api.zone,
  };
}
