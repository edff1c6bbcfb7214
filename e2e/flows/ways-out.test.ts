import {
  type CloudflareApiServer,
  type ConnectProxy,
  createGate,
  page,
  startCloudflareApi,
  startConnectProxy,
  startUnlockerApi,
  type UnlockerApiServer,
} from "@keble-scraper/testkit";
import { request } from "undici";
import { expect, test } from "vitest";
import { countLines, jobFor, openRig, QUICK_RECOVERY, type Rig } from "../stack-fixtures.ts";

const ZONE = { userName: "brd-customer-c1-zone-z1", password: "zone-password-canary" };
const PAID = { limits: { costCapMicros: 10_000_000 } };

/** A page that only a browser completes. */
const SCRIPTED = "<!doctype html><title>t</title><p id=a></p><script>a.textContent = 'made by ' + 'a script'</script>";

test("each way out runs a job end to end, and operators see what it cost", async () => {
  let port = 0;
  await using proxy: ConnectProxy = await startConnectProxy({
    to: () => port,
    dialect: "BRIGHT_DATA",
    credentials: ZONE,
  });
  await using unlocker: UnlockerApiServer = await startUnlockerApi();
  await using cloudflare: CloudflareApiServer = await startCloudflareApi();
  await using rig = await openRig({
    env: {
      SCRAPER_LOCAL_RENDER: "on",
      SCRAPER_DATACENTER_PROXY_URL: proxy.url(),
      SCRAPER_DATACENTER_PROXY_PROVIDER: "BRIGHT_DATA",
      SCRAPER_RESIDENTIAL_PROXY_URL: proxy.url(),
      SCRAPER_RESIDENTIAL_PROXY_PROVIDER: "BRIGHT_DATA",
      SCRAPER_UNLOCKER_URL: unlocker.url,
      SCRAPER_UNLOCKER_API_KEY: unlocker.apiKey,
      SCRAPER_UNLOCKER_ZONE: unlocker.zone,
      SCRAPER_CLOUDFLARE_URL: cloudflare.url,
      SCRAPER_CLOUDFLARE_ACCOUNT_ID: cloudflare.accountId,
      SCRAPER_CLOUDFLARE_API_TOKEN: cloudflare.apiToken,
    },
  });
  ({ port } = rig.origin);
  rig.origin.on("/page", page(SCRIPTED, "text/html; charset=utf-8"));
  const { api, operatorKey } = rig.stack;

  for (const route of ["DIRECT", "DATACENTER", "RESIDENTIAL", "UNLOCKER"]) {
    const job = await run(rig, { routes: [route], ...PAID });
    expect(job).toMatchObject({ status: "SUCCEEDED", result: { route, httpStatus: 200 } });
    expect(await content(rig, job.id)).toBe(SCRIPTED);
  }
  for (const route of ["LOCAL_RENDER", "CLOUDFLARE_RENDER"]) {
    const job = await run(rig, { transport: "RENDER", routes: [route], ...PAID });
    expect(job).toMatchObject({ status: "SUCCEEDED", result: { route, httpStatus: 200 } });
    if (route === "LOCAL_RENDER") expect(await content(rig, job.id)).toContain("made by a script</p>");
  }
  for (const [capture, magic] of [
    ["SCREENSHOT", "\u0089PNG"],
    ["PDF", "%PDF-"],
    ["MHTML", "From:"],
  ] as const) {
    const job = await run(rig, { transport: "RENDER", capture });
    expect(job).toMatchObject({ status: "SUCCEEDED", capture, result: { route: "LOCAL_RENDER" } });
    expect((await content(rig, job.id)).startsWith(magic)).toBe(true);
  }

  const routes = await api.call("GET", "/v1/routes", { key: operatorKey });
  const infos = (routes.body as { items: { route: string; health: string; spend: unknown }[] }).items;
  expect(infos.map(({ health }) => health)).toEqual(infos.map(() => "HEALTHY"));
  const unlockerInfo = infos.find(({ route }) => route === "UNLOCKER");
  expect(unlockerInfo).toMatchObject({ spend: { day: { settledMicros: 1_500, reservedMicros: 0, capMicros: null } } });
  const usage = await api.call("GET", "/v1/usage?groupBy=route");
  const items = (usage.body as { items: { route: string; attempts: number; costMicros: number }[] }).items;
  expect(items.find(({ route }) => route === "UNLOCKER")).toMatchObject({ attempts: 1, costMicros: 1_500 });
  expect(items.find(({ route }) => route === "LOCAL_RENDER")).toMatchObject({ attempts: 4, costMicros: 0 });
  const budgets = await api.call("GET", "/v1/budgets", { key: operatorKey });
  expect(JSON.stringify(budgets.body)).toContain('"name":"RESIDENTIAL"');
  expect(JSON.stringify([routes.body, usage.body, budgets.body, rig.stack.output()])).not.toContain("canary");
});

test("W4 an operator closes a route and opens it again: its jobs take the next route they list, or wait", async () => {
  await using unlocker = await startUnlockerApi();
  await using rig = await openRig({ env: { ...envOf(unlocker), SCRAPER_POLL_INTERVAL_SECONDS: "0.5" } });
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
      ...envOf(unlocker),
      SCRAPER_UNLOCKER_DAILY_CAP_MICROS: String(CAP),
      SCRAPER_LOG_LEVEL: "info",
    },
  });
  const { api, operatorKey: key } = rig.stack;
  const answers = createGate();
  let visits = 0;
  rig.origin.on("/page", async (reply) => {
    visits += 1;
    const isBilled = visits % 2 === 1;
    await answers.opened;
    // What was not found is not billed: its money goes back, and another job may be sent.
    await (isBilled ? reply.send({ body: "page" }) : reply.send({ status: 404, reason: "Not Found", body: "absent" }));
  });
  const spent = async () => {
    const { body } = await api.call("GET", "/v1/routes", { key });
    const { items } = body as {
      items: { route: string; spend: { day: { settledMicros: number; reservedMicros: number } } }[];
    };
    return items.find(({ route }) => route === "UNLOCKER")?.spend.day;
  };
  const job = jobFor(rig, "/page", {
    routes: ["UNLOCKER"],
    accept: "ANY_RESPONSE",
    limits: { costCapMicros: 10_000_000 },
  });
  const batch = await api.call("POST", "/v1/jobs/batch", { body: { jobs: Array.from({ length: 200 }, () => job) } });
  const ids = (batch.body as { items: { job: { id: string } }[] }).items.map((item) => item.job.id);

  // Every other job has been turned away at least once while the forty are out.
  await expect
    .poll(() => countLines(rig, '"attempt.released"'), { timeout: 60_000, interval: 100 })
    .toBeGreaterThan(200);
  expect(unlocker.requests).toHaveLength(40);
  expect(await spent()).toMatchObject({ settledMicros: 0, reservedMicros: CAP });

  const killed = ["worker-fetch-1", "worker-fetch-2"].map((name) => [name, rig.stack.kill(name)] as const);
  for (const [name, pid] of killed) await rig.stack.waitForRestart(name, pid);
  answers.open();
  const jobs = [];
  for (const id of ids) jobs.push(await api.finished(id, 120_000));

  const failed = jobs.filter(({ status }) => status === "FAILED");
  expect(failed.length).toBeGreaterThan(100);
  for (const one of failed) expect(one).toMatchObject({ failure: { code: "COST_CAP_EXCEEDED" } });
  const day = await spent();
  expect(day).toMatchObject({ reservedMicros: 0 });
  expect(day?.settledMicros).toBeLessThanOrEqual(CAP);
  expect(day?.settledMicros).toBeGreaterThan(CAP - 1_500);
  const usage = await api.call("GET", "/v1/usage?groupBy=route");
  expect(usage.body).toMatchObject({ total: { costMicros: day?.settledMicros } });
}, 240_000);

function envOf(unlocker: UnlockerApiServer) {
  return {
    SCRAPER_UNLOCKER_URL: unlocker.url,
    SCRAPER_UNLOCKER_API_KEY: unlocker.apiKey,
    SCRAPER_UNLOCKER_ZONE: unlocker.zone,
  };
}

async function run(rig: Rig, more: object) {
  const { id } = await rig.stack.api.submit(jobFor(rig, "/page", more));
  return rig.stack.api.finished(id, 60_000);
}

/** What a job fetched, as latin1. */
async function content(rig: Rig, id: string): Promise<string> {
  const { headers } = await rig.stack.api.call("GET", `/v1/jobs/${id}/content`);
  const answer = await request(String(headers["location"]));
  return Buffer.from(await answer.body.arrayBuffer()).toString("latin1");
}
