import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@keble-scraper/local-servers";
import { type Origin, startOrigin, startTcpProxy, type TcpProxy } from "@keble-scraper/testkit";
import { describe, expect, test } from "vitest";
import { countLines, jobFor, openRig, type Rig } from "../stack-fixtures.ts";

/** The gate runs a smaller share of it: the spacing of the first seconds is that of the last. */
const JOBS = process.env["KEBLE_LONG"] === "1" ? 1_000 : 250;
const PER_SECOND = 50;

/** A Redis of the test's own behind a proxy: it can be flushed, and it can be gone. */
async function openRedis(): Promise<
  AsyncDisposable & { readonly url: string; readonly proxy: TcpProxy; flush(): Promise<void> }
> {
  const directory = mkdtempSync(join(tmpdir(), "keble-admission-redis-"));
  const server = await startRedis({
    path: process.env["PATH"] ?? "",
    directory,
    logFile: join(directory, "redis.log"),
  });
  const proxy = await startTcpProxy({ target: server.url });
  return {
    url: proxy.through(server.url),
    proxy,
    flush: () =>
      new Promise((resolve, reject) => {
        const socket = connect({ host: "127.0.0.1", port: Number(new URL(server.url).port) }, () => {
          socket.end("FLUSHALL\r\n");
        });
        socket.on("error", reject);
        socket.on("close", () => {
          resolve();
        });
        socket.resume();
      }),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** The most requests in any window of a second that begins with one of them. */
function busiestSecond(times: readonly number[]): number {
  let first = 0;
  let most = 0;
  for (const [index, at] of times.entries()) {
    while (at - (times[first] ?? at) >= 1_000) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/** When each request of `path` came, in milliseconds. */
function watchPath(origin: Origin, path: string): number[] {
  const times: number[] = [];
  origin.on(path, (reply) => {
    times.push(performance.now());
    return reply.send({ body: `page ${times.length}` });
  });
  return times;
}

async function submitMany(rig: Rig, count: number, job: object): Promise<string[]> {
  const { status, body } = await rig.stack.api.call("POST", "/v1/jobs/batch", {
    body: { jobs: Array.from({ length: count }, () => job) },
  });
  expect(status).toBe(202);
  return (body as { items: { job: { id: string } }[] }).items.map((item) => item.job.id);
}

describe("W1 four workers on one route of 50 requests a second", () => {
  test.each(["with Redis", "with Redis flushed in the middle", "with Redis gone"] as const)(
    "send at most 50 in any second, spend no attempt on waiting and send nothing elsewhere, %s",
    async (how) => {
      await using redis = await openRedis();
      await using rig = await openRig({
        args: ["--fetch-workers=4"],
        env: {
          SCRAPER_REDIS_URL: redis.url,
          SCRAPER_DIRECT_REQUESTS_PER_SECOND: String(PER_SECOND),
          SCRAPER_POLL_INTERVAL_SECONDS: "0.5",
          SCRAPER_LOG_LEVEL: "info",
        },
      });
      const times = watchPath(rig.origin, "/page");
      if (how === "with Redis gone") await redis.proxy.refuse();
      const startedAt = performance.now();
      const ids = await submitMany(rig, JOBS, jobFor(rig, "/page"));
      if (how === "with Redis flushed in the middle") {
        await rig.origin.request(JOBS / 2);
        await redis.flush();
      }
      for (const id of ids) {
        const job = await rig.stack.api.finished(id, 120_000);
        expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 }, result: { route: "DIRECT" } });
      }
      const seconds = (performance.now() - startedAt) / 1_000;
      expect(times).toHaveLength(JOBS);
      // A flush forgets when the last request was booked: one burst more, of what had been booked ahead.
      if (how !== "with Redis flushed in the middle") expect(busiestSecond(times)).toBeLessThanOrEqual(PER_SECOND);
      expect(countLines(rig, '"attempt.released"') / JOBS).toBeLessThan(2);
      console.log(`W1 ${how}: ${JOBS} jobs in ${seconds.toFixed(1)} s, busiest second ${busiestSecond(times)}`);
    },
    180_000,
  );
});

test("W2 thirty jobs for a host of one request a second delay no other host's job", async () => {
  await using other = await startOrigin();
  await using slow = await startOrigin();
  await using rig = await openRig({
    origins: [other, slow],
    env: {
      SCRAPER_HOST_POLICY_FOR_ALLOWED: "on",
      SCRAPER_HOST_REQUESTS_PER_SECOND: "1",
      SCRAPER_FETCH_SLOTS: "10",
    },
  });
  const slowTimes = watchPath(slow, "/page");
  const otherTimes = watchPath(other, "/page");
  await submitMany(rig, 30, { target: { url: `http://127.0.0.1:${slow.port}/page` }, robots: "IGNORE" });
  await slow.request(2);
  const job = await rig.stack.api.submit({ target: { url: `http://127.0.0.1:${other.port}/page` }, robots: "IGNORE" });
  expect(await rig.stack.api.finished(job.id)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  expect(otherTimes).toHaveLength(1);
  // The other host's job went past most of the thirty.
  expect(slowTimes.length).toBeLessThan(10);
  expect(busiestSecond(slowTimes)).toBe(1);
});

test("W2 a host that asked for 7 s, in seconds or as a date, is touched by no worker within them, Redis flushed or not", async () => {
  await using redis = await openRedis();
  await using dated = await startOrigin();
  await using free = await startOrigin();
  await using rig = await openRig({
    args: ["--fetch-workers=3"],
    origins: [dated, free],
    env: { SCRAPER_REDIS_URL: redis.url, SCRAPER_POLL_INTERVAL_SECONDS: "0.5", SCRAPER_RETRY_BASE_MS: "1" },
  });
  const inSeconds = watchRefusals(rig.origin, () => "7");
  // A date has whole seconds: this one is 7 to 8 s ahead.
  const asDate = watchRefusals(dated, () => new Date((Math.floor(Date.now() / 1_000) + 8) * 1_000).toUTCString());
  const elsewhere = watchPath(free, "/page");
  const urlOf = (origin: Origin) => ({ target: { url: `http://127.0.0.1:${origin.port}/page` }, robots: "IGNORE" });
  const { api } = rig.stack;
  const refused = [await api.submit(urlOf(rig.origin)), await api.submit(urlOf(dated))];
  // Settled: from here on the holds are rows.
  for (const { id } of refused) {
    await expect
      .poll(async () => (await api.call("GET", `/v1/jobs/${id}`)).body, { timeout: 10_000, interval: 20 })
      .toMatchObject({ status: "WAITING" });
  }
  const ids = await submitMany(rig, 20, urlOf(rig.origin));
  ids.push(...(await submitMany(rig, 20, urlOf(dated))));
  await redis.flush();
  const free1 = await api.submit(urlOf(free));
  expect(await api.finished(free1.id)).toMatchObject({ status: "SUCCEEDED" });
  expect(inSeconds).toHaveLength(1);
  expect(elsewhere).toHaveLength(1);
  for (const id of [...refused.map((job) => job.id), ...ids]) {
    expect(await api.finished(id, 60_000)).toMatchObject({ status: "SUCCEEDED", result: { route: "DIRECT" } });
  }
  for (const visits of [inSeconds, asDate]) {
    const [refusedAt = 0, ...later] = visits;
    expect(later).toHaveLength(21);
    expect(Math.min(...later) - refusedAt).toBeGreaterThanOrEqual(7_000);
  }
});

test("J5 a Retry-After past the deadline ends the job at once, as RATE_LIMITED", async () => {
  await using rig = await openRig();
  watchRefusals(rig.origin, () => "86400");
  const { id } = await rig.stack.api.submit(jobFor(rig, "/page", { limits: { deadline: "FIVE_MINUTES" } }));
  const job = await rig.stack.api.finished(id, 10_000);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "RATE_LIMITED" }, limits: { attemptsUsed: 1 } });
});

/** Refuses the first request with a Retry-After and serves the rest; answers when each came. */
function watchRefusals(origin: Origin, retryAfter: () => string): number[] {
  const times: number[] = [];
  origin.on("/page", (reply) => {
    times.push(performance.now());
    return times.length === 1
      ? reply.send({
          status: 429,
          reason: "Too Many Requests",
          headers: { "Retry-After": retryAfter() },
          body: "slow down",
        })
      : reply.send({ body: `page ${times.length}` });
  });
  return times;
}
