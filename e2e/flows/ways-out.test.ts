import {
  type CloudflareApiServer,
  type ConnectProxy,
  createGate,
  page,
  requireChromium,
  startCloudflareApi,
  startConnectProxy,
  startUnlockerApi,
  type UnlockerApiServer,
} from "@keble-scraper/testkit";
import { findChromium } from "@keble-scraper/egress/render";
import { request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { countLines, jobFor, openRig, QUICK_RECOVERY, type Rig, submitMany, unlockerEnv } from "../stack-fixtures.ts";

const ZONE = { userName: "brd-customer-c1-zone-z1", password: "zone-password-canary" };
const PAID = { limits: { costCapMicros: 10_000_000 } };

/** A page that only a browser completes. */
const SCRIPTED = "<!doctype html><title>t</title><p id=a></p><script>a.textContent = 'made by ' + 'a script'</script>";

describe("each way out, from a submit to its bytes", () => {
  let port = 0;
  let proxy: ConnectProxy;
  let unlocker: UnlockerApiServer;
  let cloudflare: CloudflareApiServer;
  let rig: Rig;

  beforeAll(async () => {
    await requireChromium(() => findChromium(null));
    proxy = await startConnectProxy({ to: () => port, dialect: "BRIGHT_DATA", credentials: ZONE });
    unlocker = await startUnlockerApi();
    cloudflare = await startCloudflareApi();
    rig = await openRig({
      env: {
        ...unlockerEnv(unlocker),
        SCRAPER_LOCAL_RENDER: "on",
        SCRAPER_DATACENTER_PROXY_URL: proxy.url(),
        SCRAPER_DATACENTER_PROXY_PROVIDER: "BRIGHT_DATA",
        SCRAPER_RESIDENTIAL_PROXY_URL: proxy.url(),
        SCRAPER_RESIDENTIAL_PROXY_PROVIDER: "BRIGHT_DATA",
        SCRAPER_CLOUDFLARE_URL: cloudflare.url,
        SCRAPER_CLOUDFLARE_ACCOUNT_ID: cloudflare.accountId,
        SCRAPER_CLOUDFLARE_API_TOKEN: cloudflare.apiToken,
      },
    });
    ({ port } = rig.origin);
    rig.origin.on("/page", page(SCRIPTED, "text/html; charset=utf-8"));
  });
  afterAll(async () => {
    for (const server of [rig, cloudflare, unlocker, proxy]) await server[Symbol.asyncDispose]();
  });

  test.each(["DIRECT", "DATACENTER", "RESIDENTIAL", "UNLOCKER"])("%s brings the page as it was sent", async (route) => {
    const job = await run(rig, { routes: [route], ...PAID });
    expect(job).toMatchObject({ status: "SUCCEEDED", result: { route, httpStatus: 200 } });
    expect(await content(rig, job.id)).toBe(SCRIPTED);
  });

  test("LOCAL_RENDER brings the page as its script made it", async () => {
    const job = await run(rig, { transport: "RENDER", routes: ["LOCAL_RENDER"] });
    expect(job).toMatchObject({ status: "SUCCEEDED", result: { route: "LOCAL_RENDER", httpStatus: 200 } });
    expect(await content(rig, job.id)).toContain("made by a script</p>");
  });

  test("CLOUDFLARE_RENDER brings what the supplier rendered", async () => {
    const job = await run(rig, { transport: "RENDER", routes: ["CLOUDFLARE_RENDER"], ...PAID });
    expect(job).toMatchObject({ status: "SUCCEEDED", result: { route: "CLOUDFLARE_RENDER", httpStatus: 200 } });
  });

  test.each([
    ["SCREENSHOT", "\u0089PNG"],
    ["PDF", "%PDF-"],
    ["MHTML", "From:"],
  ])("a %s is one", async (capture, magic) => {
    const job = await run(rig, { transport: "RENDER", capture });
    expect(job).toMatchObject({ status: "SUCCEEDED", capture, result: { route: "LOCAL_RENDER" } });
    expect((await content(rig, job.id)).startsWith(magic)).toBe(true);
  });

  test("operators see that each is healthy and what it cost, callers what they used, and nobody a secret", async () => {
    const { api, operatorKey: key } = rig.stack;
    const before = await spentBy(rig, "UNLOCKER");
    await run(rig, { routes: ["UNLOCKER"], labels: { batch: "money" }, ...PAID });
    expect(await spentBy(rig, "UNLOCKER")).toEqual({
      settledMicros: before.settledMicros + 1_500,
      reservedMicros: 0,
      capMicros: null,
    });
    const routes = await api.call("GET", "/v1/routes", { key });
    const { items } = routes.body as { items: { health: string }[] };
    expect(items.map(({ health }) => health)).toEqual(items.map(() => "HEALTHY"));
    const usage = await api.call("GET", "/v1/usage?groupBy=label:batch");
    expect((usage.body as { items: object[] }).items).toContainEqual(
      expect.objectContaining({ label: "money", attempts: 1, costMicros: 1_500 }),
    );
    const budgets = await api.call("GET", "/v1/budgets?scope=ROUTE&name=UNLOCKER&period=DAY", { key });
    expect(budgets.body).toMatchObject({ items: [{ settledMicros: before.settledMicros + 1_500 }] });
    const told = JSON.stringify([routes.body, usage.body, budgets.body, rig.stack.output()]);
    for (const secret of [ZONE.password, unlocker.apiKey, cloudflare.apiToken]) expect(told).not.toContain(secret);
  });
});

test("W4 an operator closes a route and opens it again: its jobs take the next route they list, or wait", async () => {
  await using unlocker = await startUnlockerApi();
  await using rig = await openRig({ env: { ...unlockerEnv(unlocker), SCRAPER_POLL_INTERVAL_SECONDS: "0.5" } });
  const { api, operatorKey: key } = rig.stack;
  rig.origin.on("/page", page("page"));
  const closed = await api.call("POST", "/v1/routes/UNLOCKER/quarantine", { key, body: { note: "bill disputed" } });
  expect(closed).toMatchObject({ status: 200, body: { health: "QUARANTINED", quarantine: { note: "bill disputed" } } });
  const waits = await api.submit(jobFor(rig, "/page", { routes: ["UNLOCKER"], ...PAID }));
  expect(await run(rig, { routes: ["UNLOCKER", "DIRECT"], ...PAID })).toMatchObject({ result: { route: "DIRECT" } });
  expect(await api.call("GET", `/v1/jobs/${waits.id}`)).toMatchObject({ body: { limits: { attemptsUsed: 0 } } });
  expect(unlocker.requests).toHaveLength(0);
  expect(await api.call("POST", "/v1/routes/UNLOCKER/release", { key })).toMatchObject({ body: { health: "HEALTHY" } });
  expect(await api.finished(waits.id)).toMatchObject({ status: "SUCCEEDED", result: { route: "UNLOCKER" } });
});

test("W3 two hundred jobs on a cap that pays for forty: forty are sent, whatever dies, and the cap is never passed", async () => {
  const CAP = 40 * 1_500;
  await using unlocker = await startUnlockerApi();
  await using rig = await openRig({
    args: ["--fetch-workers=3"],
    env: {
      ...QUICK_RECOVERY,
      ...unlockerEnv(unlocker),
      SCRAPER_UNLOCKER_DAILY_CAP_MICROS: String(CAP),
      SCRAPER_LOG_LEVEL: "info",
    },
  });
  const { api } = rig.stack;
  const answers = createGate();
  let visits = 0;
  rig.origin.on("/page", async (reply) => {
    visits += 1;
    const isBilled = visits % 2 === 1;
    await answers.opened;
    // What was not found is not billed: its money goes back, and another job may be sent.
    await (isBilled ? reply.send({ body: "page" }) : reply.send({ status: 404, reason: "Not Found", body: "absent" }));
  });
  const job = jobFor(rig, "/page", { routes: ["UNLOCKER"], accept: "ANY_RESPONSE", ...PAID });
  const ids = await submitMany(rig, 200, job);

  // Every other job has been turned away at least once while the forty are out.
  await expect
    .poll(() => countLines(rig, '"attempt.released"'), { timeout: 60_000, interval: 100 })
    .toBeGreaterThan(200);
  expect(unlocker.requests).toHaveLength(40);
  expect(await spentBy(rig, "UNLOCKER")).toMatchObject({ settledMicros: 0, reservedMicros: CAP });

  const killed = ["worker-fetch-1", "worker-fetch-2"].map((name) => [name, rig.stack.kill(name)] as const);
  for (const [name, pid] of killed) await rig.stack.waitForRestart(name, pid);
  answers.open();
  const jobs = [];
  for (const id of ids) jobs.push(await api.finished(id, 120_000));

  const failed = jobs.filter(({ status }) => status === "FAILED");
  expect(failed.length).toBeGreaterThan(100);
  for (const one of failed) expect(one).toMatchObject({ failure: { code: "COST_CAP_EXCEEDED" } });
  const day = await spentBy(rig, "UNLOCKER");
  expect(day).toMatchObject({ reservedMicros: 0 });
  expect(day.settledMicros).toBeLessThanOrEqual(CAP);
  expect(day.settledMicros).toBeGreaterThan(CAP - 1_500);
  const usage = await api.call("GET", "/v1/usage?groupBy=route");
  expect(usage.body).toMatchObject({ total: { costMicros: day.settledMicros } });
}, 240_000);

async function run(rig: Rig, more: object) {
  const { id } = await rig.stack.api.submit(jobFor(rig, "/page", more));
  return rig.stack.api.finished(id, 60_000);
}

/** What operators see of a route's money today. */
async function spentBy(
  rig: Rig,
  route: string,
): Promise<{ settledMicros: number; reservedMicros: number; capMicros: number | null }> {
  const { body } = await rig.stack.api.call("GET", "/v1/routes", { key: rig.stack.operatorKey });
  type Spend = Awaited<ReturnType<typeof spentBy>>;
  const { items } = body as { items: { route: string; spend: { day: Spend } | null }[] };
  const day = items.find((info) => info.route === route)?.spend?.day;
  if (day === undefined) throw new Error(`${route} has no spend`);
  return day;
}

/** What a job fetched, as latin1. */
async function content(rig: Rig, id: string): Promise<string> {
  const { headers } = await rig.stack.api.call("GET", `/v1/jobs/${id}/content`);
  const answer = await request(String(headers["location"]));
  return Buffer.from(await answer.body.arrayBuffer()).toString("latin1");
}
