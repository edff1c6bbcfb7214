import { monitorEventLoopDelay } from "node:perf_hooks";
import { type Origin, startOrigin, startUnlockerApi, type UnlockerApiServer } from "@keble-scraper/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openPrivateRedis, type PrivateRedis } from "../private-redis.ts";
import { countLines, jobAt, jobFor, openRig, type Rig, submitMany, unlockerEnv } from "../stack-fixtures.ts";

/** The gate sends a sixth of it: the spacing of its seconds is that of all others. */
const JOBS = process.env["KEBLE_LONG"] === "1" ? 1_000 : 160;
const PER_SECOND = 50;

describe("four workers on one route of 50 requests a second", () => {
  let redis: PrivateRedis;
  let plain: Origin;
  let dated: Origin;
  let free: Origin;
  let late: Origin;
  let unlocker: UnlockerApiServer;
  let rig: Rig;

  beforeAll(async () => {
    redis = await openPrivateRedis();
    [plain, dated, free, late] = await Promise.all([startOrigin(), startOrigin(), startOrigin(), startOrigin()]);
    unlocker = await startUnlockerApi();
    rig = await openRig({
      args: ["--fetch-workers=4"],
      origins: [plain, dated, free, late],
      env: {
        SCRAPER_REDIS_URL: redis.url,
        SCRAPER_DIRECT_REQUESTS_PER_SECOND: String(PER_SECOND),
        SCRAPER_POLL_INTERVAL_SECONDS: "0.5",
        SCRAPER_RETRY_BASE_MS: "1",
        SCRAPER_LOG_LEVEL: "info",
        ...unlockerEnv(unlocker),
      },
    });
  });
  afterAll(async () => {
    for (const server of [rig, unlocker, plain, dated, free, late, redis]) await server[Symbol.asyncDispose]();
  });

  test.each(["Redis is there", "Redis is flushed in the middle", "Redis is gone"] as const)(
    "W1 send no more in any second, spend no attempt on waiting and send nothing elsewhere while %s",
    async (what) => {
      const released = countLines(rig, '"attempt.released"');
      const asked = rig.origin.requests.length;
      if (what === "Redis is gone") await redis.proxy.refuse();
      const visits = watchVisits(rig.origin);
      const ids = await submitMany(rig, JOBS, jobFor(rig, "/page"));
      if (what === "Redis is flushed in the middle") {
        await rig.origin.request(asked + JOBS / 2);
        await redis.flush();
      }
      for (const id of ids) {
        const job = await rig.stack.api.finished(id, 120_000);
        expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 }, result: { route: "DIRECT" } });
      }
      await redis.proxy.restore();
      expect(visits.times).toHaveLength(JOBS);
      expect(visits.mostInASecond()).toBeLessThanOrEqual(PER_SECOND);
      expect((countLines(rig, '"attempt.released"') - released) / JOBS).toBeLessThan(2);
    },
    180_000,
  );

  test("W2 a host that asked for 7 s, in seconds or as a date, is touched by no worker within them, Redis flushed or not", async () => {
    const { api } = rig.stack;
    // A wait is no reason to pay for another way.
    const mayPay = { routes: ["DIRECT", "UNLOCKER"], limits: { costCapMicros: 10_000_000 } };
    const held = [
      { origin: plain, times: refuseFirst(plain, () => "7") },
      // A date has whole seconds: this one is 7 to 8 s ahead.
      {
        origin: dated,
        times: refuseFirst(dated, () => new Date((Math.floor(Date.now() / 1_000) + 8) * 1_000).toUTCString()),
      },
    ];
    const ids: string[] = [];
    for (const { origin } of held) {
      const { id } = await api.submit(jobAt(origin, "/page", mayPay));
      ids.push(id);
      // Once it waits, its attempt is settled and the hold is a row.
      await expect
        .poll(async () => (await api.call("GET", `/v1/jobs/${id}`)).body, { timeout: 10_000, interval: 20 })
        .toMatchObject({ status: "WAITING" });
    }
    for (const { origin } of held) ids.push(...(await submitMany(rig, 20, jobAt(origin, "/page", mayPay))));
    await redis.flush();
    const elsewhere = watchVisits(free);
    const { id: freeId } = await api.submit(jobAt(free, "/page"));
    expect(await api.finished(freeId)).toMatchObject({ status: "SUCCEEDED" });
    expect(elsewhere.times).toHaveLength(1);
    for (const id of ids) {
      expect(await api.finished(id, 60_000)).toMatchObject({ status: "SUCCEEDED", result: { route: "DIRECT" } });
    }
    expect(unlocker.requests).toHaveLength(0);
    for (const { times } of held) {
      const [refusedAt = 0, ...later] = times;
      expect(later).toHaveLength(21);
      expect(Math.min(...later) - refusedAt).toBeGreaterThanOrEqual(7_000);
    }
  });

  test("J5 a Retry-After past the deadline ends the job at once, as RATE_LIMITED", async () => {
    refuseFirst(late, () => "86400");
    const { id } = await rig.stack.api.submit(jobAt(late, "/page", { limits: { deadline: "FIVE_MINUTES" } }));
    const job = await rig.stack.api.finished(id, 10_000);
    expect(job).toMatchObject({ status: "FAILED", failure: { code: "RATE_LIMITED" }, limits: { attemptsUsed: 1 } });
  });

  test("W2 thirty jobs for a host of one request a second delay no other host's job", async () => {
    await using slow = await startOrigin();
    await using other = await startOrigin();
    await using rig = await openRig({
      origins: [slow, other],
      env: {
        SCRAPER_HOST_POLICY_FOR_ALLOWED: "on",
        SCRAPER_HOST_REQUESTS_PER_SECOND: "1",
        SCRAPER_FETCH_SLOTS: "10",
      },
    });
    const slowVisits = watchVisits(slow);
    const otherVisits = watchVisits(other);
    await submitMany(rig, 30, jobAt(slow, "/page"));
    await slow.request(2);
    const { id } = await rig.stack.api.submit(jobAt(other, "/page"));
    expect(await rig.stack.api.finished(id)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
    expect(otherVisits.times).toHaveLength(1);
    // In the order of their submits the other host's job would have been the last of all.
    expect(slowVisits.times.length).toBeLessThan(15);
    expect(slowVisits.mostInASecond()).toBe(1);
  });
});

/** Serves `/page` and remembers when each of its requests came. */
function watchVisits(origin: Origin): { readonly times: readonly number[]; mostInASecond(): number } {
  const times: number[] = [];
  const stalls = monitorEventLoopDelay({ resolution: 5 });
  stalls.enable();
  origin.on("/page", (reply) => {
    times.push(performance.now());
    return reply.send({ body: `page ${times.length}` });
  });
  return {
    times,
    // This process stands still now and then, and sees late what came earlier: only a second less the longest such pause
    // holds nothing but what came within a second.
    mostInASecond: () => mostWithin(times, 1_000 - stalls.max / 1_000_000),
  };
}

/** The most of these moments in any window that begins with one of them. */
function mostWithin(times: readonly number[], windowMs: number): number {
  let first = 0;
  let most = 0;
  for (const [index, at] of times.entries()) {
    while (at - (times[first] ?? at) >= windowMs) first += 1;
    most = Math.max(most, index - first + 1);
  }
  return most;
}

/** Answers the first request of `/page` 429 with a Retry-After and serves the others; the moments of all. */
function refuseFirst(origin: Origin, retryAfter: () => string): readonly number[] {
  const times: number[] = [];
  origin.on("/page", (reply) => {
    times.push(performance.now());
    if (times.length > 1) return reply.send({ body: `page ${times.length}` });
    const headers = { "Retry-After": retryAfter() };
    return reply.send({ status: 429, reason: "Too Many Requests", headers, body: "slow down" });
  });
  return times;
}
