import { claimJobs, settleJobs, takeFlights } from "@keble-scraper/db/commands/fetching";
import { cancelJob, type NewJob } from "@keble-scraper/db/commands/intake";
import { createGate, type OriginAnswer } from "@keble-scraper/testkit";
import { afterAll, expect, test } from "vitest";
import { type FetchRig, openFetchRig, untilEnded } from "./worker-fixtures.ts";

const rig = await openFetchRig({ SCRAPER_FETCH_SLOTS: "60" });
await rig.startWorker();
afterAll(() => rig[Symbol.asyncDispose]());

let keys = 0;
/** A key of its own. */
function newKey(): string {
  keys += 1;
  return keys.toString(16).padStart(64, "0");
}

function want(cacheKey: string, more: Partial<NewJob> = {}): Partial<NewJob> {
  return { freshness: "ONE_HOUR", cacheKey, ...more };
}

/** Runs a job to its end. */
async function run(path: string, job: Partial<NewJob>, on: FetchRig = rig, callerId = "acme") {
  return untilEnded(on, await on.submit(path, job, callerId));
}

const requestsOf = (path: string, on: FetchRig = rig) => on.origin.requests.filter((one) => one.path === path);

async function age(cacheKey: string, on: FetchRig = rig): Promise<void> {
  await on.database.commands`
    update cache_entries set validated_at = clock_timestamp() - interval '2 hours' where key = decode(${cacheKey}, 'hex')`;
}

async function entriesOf(cacheKey: string, on: FetchRig = rig) {
  return on.database.commands<{ caller_id: string; etag: string | null; result: object | null }[]>`
    select caller_id, etag, result from cache_entries where key = decode(${cacheKey}, 'hex') order by caller_id`;
}

test("A7 equal jobs at once make one request; all get its bytes, and only the one that fetched has a ledger", async () => {
  const [gate, key] = [createGate(), newKey()];
  rig.origin.on("/popular", async (reply) => {
    await gate.opened;
    await reply.send({ headers: { "Content-Type": "text/html" }, body: "<p>popular</p>" });
  });
  const ids = await Promise.all(Array.from({ length: 50 }, () => rig.submit("/popular", want(key))));
  // The others have been put back, without a slot and without an attempt.
  const putBack = () => rig.database.commands`
    select 1 from jobs where id = any(${ids}::uuid[]) and status = 'QUEUED' and due_at > clock_timestamp() and attempts_used = 0`;
  await expect.poll(async () => (await putBack()).length, { interval: 5, timeout: 10_000 }).toBe(49);
  gate.open();
  const jobs = await Promise.all(ids.map((id) => untilEnded(rig, id)));
  expect(requestsOf("/popular")).toHaveLength(1);
  expect(jobs.map((job) => job.status)).toEqual(Array(50).fill("SUCCEEDED"));
  expect(new Set(jobs.map((job) => job.result?.artifactId)).size).toBe(1);
  expect(new Set(jobs.map((job) => job.result?.fetchedAt)).size).toBe(1);
  const taken = jobs.filter((job) => job.result?.fromCache === true);
  expect(taken).toHaveLength(49);
  expect(taken.every((job) => job.limits.attemptsUsed === 0 && (job.result?.ageSeconds ?? -1) >= 0)).toBe(true);
  const ledgers = await Promise.all(ids.map((id) => rig.ledger(id)));
  expect(ledgers.flat()).toEqual(["SUCCEEDED"]);
});

test("A7 an answer that is too old, too large or of an unwanted type is fetched again; one of another key or caller too", async () => {
  const key = newKey();
  rig.origin.on("/page", (reply) => reply.send({ headers: { "Content-Type": "text/html" }, body: "<p>a page</p>" }));
  const seen = () => requestsOf("/page").length;
  expect(await run("/page", want(key))).toMatchObject({ result: { fromCache: false } });
  expect(await run("/page", want(key))).toMatchObject({ result: { fromCache: true } });
  expect(await run("/page", want(key, { contentTypes: ["text/*"], maxBodyBytes: 13 }))).toMatchObject({
    result: { fromCache: true },
  });
  expect(seen()).toBe(1);
  expect(await run("/page", want(key, { maxBodyBytes: 12 }))).toMatchObject({ failure: { code: "BODY_TOO_LARGE" } });
  expect(await run("/page", want(key, { contentTypes: ["application/json"] }))).toMatchObject({
    failure: { code: "UNWANTED_CONTENT_TYPE" },
  });
  expect(seen()).toBe(3);
  expect(await run("/page", want(newKey()))).toMatchObject({ result: { fromCache: false } });
  expect(await run("/page", want(key), rig, "globex")).toMatchObject({ result: { fromCache: false } });
  expect(await run("/page", { freshness: "NO_CACHE" })).toMatchObject({ result: { fromCache: false } });
  expect(seen()).toBe(6);
  await age(key);
  const old = await run("/page", want(key, { freshness: "ONE_DAY" }));
  expect(old).toMatchObject({ result: { fromCache: true } });
  expect(Math.floor((old.result?.ageSeconds ?? 0) / 60)).toBe(120);
  expect(await run("/page", want(key))).toMatchObject({ result: { fromCache: false } });
  expect(seen()).toBe(7);
  const young = await run("/page", want(key));
  expect(young).toMatchObject({ result: { fromCache: true } });
  expect(young.result?.ageSeconds).toBeLessThan(60);
});

test("A7 when the one that fetches fails, is cancelled or reads less than others may, the others still end right", async () => {
  const answers: Readonly<Record<string, OriginAnswer>> = { fails: { status: 404, reason: "Gone", body: "no" } };
  for (const how of ["fails", "cancelled", "small"] as const) {
    const [key, path, gate] = [newKey(), `/${how}`, createGate()];
    rig.origin.on(path, async (reply) => {
      const isFirst = requestsOf(path).length === 1;
      if (isFirst) await Promise.race([gate.opened, reply.closed]);
      await reply.send(isFirst ? (answers[how] ?? { body: "the page" }) : { body: "the page" });
    });
    const leader = await rig.submit(path, want(key, how === "small" ? { maxBodyBytes: 3 } : {}));
    await rig.origin.request(rig.origin.requests.length + (requestsOf(path).length === 0 ? 1 : 0));
    const others = await Promise.all([1, 2, 3].map(() => rig.submit(path, want(key))));
    if (how === "cancelled")
      await cancelJob(rig.database.commands, { id: leader, callerId: "acme" }, { jobRetentionMs: 1_000_000 });
    gate.open();
    const jobs = await Promise.all(others.map((id) => untilEnded(rig, id)));
    expect([how, jobs.map((job) => job.status)]).toEqual([how, Array(3).fill("SUCCEEDED")]);
    expect([how, requestsOf(path).length]).toEqual([how, 2]);
    expect([how, (await untilEnded(rig, leader)).status]).toEqual([how, how === "cancelled" ? "CANCELLED" : "FAILED"]);
  }
});

test("A7 the first that finds the answer of another worker's fetch wakes the others", async () => {
  const [key, { commands: sql }] = [newKey(), rig.database];
  const leaderId = await rig.submit("/elsewhere", want(key, { transport: "RENDER" }));
  const [leader] = (
    await claimJobs(sql, {
      transport: "RENDER",
      of: "TRUSTED",
      slots: 1,
      leaseSeconds: 60,
      afterCaller: "",
      callerRunningMax: null,
    })
  ).leases;
  if (leader === undefined) throw new Error("the leader was not claimed");
  await takeFlights(sql, [{ ...leader, place: { key, callerId: "acme" }, seenAtMs: 0 }]);
  const ids = await Promise.all([1, 2, 3].map(() => rig.submit("/elsewhere", want(key))));
  // As they would be behind a crowd. One is on its way, sooner or later.
  const putOff = () => sql`
    update jobs set due_at = clock_timestamp() + interval '29 s'
    where id = any(${ids.slice(1)}::uuid[]) and status = 'QUEUED' and attempt_number = 0 and due_at > clock_timestamp() + interval '100 ms'
      and due_at < clock_timestamp() + interval '10 s'`;
  for (let off = 0; off < 2;) off += (await putOff()).count;
  const report = {
    ...leader,
    attemptId: crypto.randomUUID(),
    outcome: "SUCCEEDED",
    httpStatus: 200,
    failure: null,
  } as const;
  const nothing = {
    retryAfterMs: null,
    bodyBytes: 0,
    wireBytes: 0,
    timings: {},
    bytes: null,
    hold: null,
    quarantine: null,
  };
  const free = { hasReservation: false, costMicros: 0, providerRequestId: null, next: "FINISH", waitMs: 0 } as const;
  const result = {
    httpStatus: 200,
    finalUrl: "http://127.0.0.1/elsewhere",
    redirects: [],
    headers: {},
    route: "DIRECT",
    fromCache: false,
  };
  const types = { contentType: { declared: null, sniffed: null }, charset: { declared: null, detected: null } };
  const cache = { key, isShared: false, marksOwn: false, etag: null, lastModified: null };
  await settleJobs(sql, [{ ...report, ...nothing, ...free, result: { ...result, ...types }, cache }], {
    jobRetentionMs: 1_000_000,
    abortGraceMs: 2_000,
  });
  const startedAt = performance.now();
  const jobs = await Promise.all(ids.map((id) => untilEnded(rig, id)));
  expect(jobs.map((job) => job.result?.fromCache)).toEqual([true, true, true]);
  expect(performance.now() - startedAt).toBeLessThan(10_000);
  expect(await rig.read(leaderId)).toMatchObject({ status: "SUCCEEDED" });
});

test("J5 a job that waits for another's fetch ends at its deadline, uncounted", async () => {
  const [gate, key] = [createGate(), newKey()];
  rig.origin.on("/endless", async (reply) => {
    await gate.opened;
    await reply.send({ body: "late" });
  });
  const leader = await rig.submit("/endless", want(key));
  await rig.origin.request(rig.origin.requests.length + (requestsOf("/endless").length === 0 ? 1 : 0));
  const job = await run("/endless", want(key, { deadlineSeconds: 2 }));
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "DEADLINE_EXCEEDED" }, limits: { attemptsUsed: 0 } });
  expect(await rig.ledger(job.id)).toEqual([]);
  gate.open();
  expect(await untilEnded(rig, leader)).toMatchObject({ status: "SUCCEEDED" });
});

test("A7 block pages and 404s do not enter, and do not replace what is there", async () => {
  const key = newKey();
  let answer: OriginAnswer = { status: 404, reason: "Not Found", body: "no" };
  rig.origin.on("/moody", (reply) => reply.send(answer));
  await run("/moody", want(key, { accept: "ANY_RESPONSE" }));
  expect(await entriesOf(key)).toHaveLength(0);
  answer = { body: "good" };
  await run("/moody", want(key));
  await age(key);
  answer = {
    status: 403,
    reason: "Forbidden",
    headers: { Server: "cloudflare", "cf-mitigated": "challenge" },
    body: "blocked",
  };
  expect(await run("/moody", want(key))).toMatchObject({ status: "FAILED", failure: { code: "BLOCKED" } });
  expect(await run("/moody", want(key, { freshness: "ONE_DAY" }))).toMatchObject({
    result: { fromCache: true, sizeBytes: 4 },
  });
});

test.each([
  ["an ETag", { ETag: 'W/"v1"' }, "if-none-match", 'W/"v1"'],
  [
    "a Last-Modified",
    { "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT" },
    "if-modified-since",
    "Mon, 01 Jan 2024 00:00:00 GMT",
  ],
])("A7 an old answer with %s is renewed by a 304, and replaced by a 200", async (what, validator, name, value) => {
  const [key, path] = [newKey(), `/validated-${name}`];
  let isSame = true;
  rig.origin.on(path, (reply) =>
    isSame && reply.request.headers[name] === value
      ? reply.send({ status: 304, reason: "Not Modified", headers: { "X-Seen": "twice" } })
      : reply.send({
          headers: { ...validator, "Content-Type": "text/plain", "X-Seen": "once" },
          body: `body ${isSame}`,
        }),
  );
  const first = await run(path, want(key));
  await age(key);
  const renewed = await run(path, want(key));
  expect([what, requestsOf(path).map(({ headers }) => headers[name])]).toEqual([what, [undefined, value]]);
  const { result } = first;
  expect(renewed).toMatchObject({
    status: "SUCCEEDED",
    limits: { attemptsUsed: 1 },
    result: { ...result, headers: { ...result?.headers, "x-seen": "twice" }, fromCache: true, ageSeconds: 0 },
  });
  const [attempt] = await rig.database
    .commands`select outcome, http_status, body_bytes::int from attempts where job_id = ${renewed.id}`;
  expect(attempt).toEqual({ outcome: "SUCCEEDED", http_status: 304, body_bytes: 0 });
  // The renewed one is young again, and kept its validators.
  expect(await run(path, want(key))).toMatchObject({
    result: { fromCache: true, headers: { "x-seen": "twice" }, fetchedAt: result?.fetchedAt },
  });
  expect(requestsOf(path)).toHaveLength(2);
  await age(key);
  isSame = false;
  const replaced = await run(path, want(key));
  expect(requestsOf(path).at(-1)?.headers[name]).toBe(value);
  expect(replaced).toMatchObject({ result: { fromCache: false, headers: { "x-seen": "once" } } });
  expect(replaced.result?.sha256).not.toBe(result?.sha256);
  expect(await run(path, want(key))).toMatchObject({ result: { fromCache: true, sha256: replaced.result?.sha256 } });
});

test("A7 a 304 for another URL or ETag, or for bytes that went meanwhile, drops the answer and goes again without a condition", async () => {
  for (const how of ["MOVED", "CHANGED", "GONE"] as const) {
    const [key, path] = [newKey(), `/vouched-${how}`];
    rig.origin.on(path, async (reply) => {
      const isAsked = reply.request.headers["if-none-match"] !== undefined;
      if (!isAsked) return reply.send({ headers: { ETag: '"1"' }, body: `a body ${how}` });
      if (how === "CHANGED") return reply.send({ status: 304, reason: "Not Modified", headers: { ETag: '"2"' } });
      if (how === "MOVED") return reply.send({ status: 302, reason: "Found", headers: { Location: `${path}-there` } });
      await rig.database.commands`
        update blobs set state = 'DELETING' where id in (
          select a.blob_id from cache_entries e join artifacts a on a.id = e.artifact_id where e.key = decode(${key}, 'hex'))`;
      return reply.send({ status: 304, reason: "Not Modified" });
    });
    rig.origin.on(`${path}-there`, (reply) => reply.send({ status: 304, reason: "Not Modified" }));
    await run(path, want(key));
    await age(key);
    const job = await run(path, want(key));
    expect([how, job]).toMatchObject([
      how,
      { status: "SUCCEEDED", limits: { attemptsUsed: 1 }, result: { httpStatus: 200, fromCache: false } },
    ]);
    expect([how, await rig.ledger(job.id)]).toEqual([how, ["HANDED_BACK", "SUCCEEDED"]]);
    expect(requestsOf(path).map(({ headers }) => headers["if-none-match"])).toEqual([undefined, '"1"', undefined]);
  }
});

test("A7 callers share answers only where that is on, and only what is nobody's own", async () => {
  await using shared = await openFetchRig({ SCRAPER_CACHE_SHARED: "on" });
  await shared.startWorker();
  const own: Readonly<Record<string, readonly [Record<string, string>, Record<string, string>]>> = {
    cookie: [{ "Set-Cookie": "a=1" }, {}],
    private: [{ "Cache-Control": "max-age=60, Private" }, {}],
    "no-store": [{ "Cache-Control": "no-store" }, {}],
    vary: [{ Vary: "*" }, {}],
    referer: [{}, { referer: "https://example.com/" }],
  };
  for (const [how, [headers, asked]] of Object.entries(own)) {
    const [key, path] = [newKey(), `/${how}`];
    shared.origin.on(path, (reply) => reply.send({ headers, body: how }));
    const target = { url: `http://127.0.0.1:${shared.origin.port}${path}`, method: "GET", headers: asked };
    const job = want(key, { target });
    await run(path, job, shared, "acme");
    expect([how, await run(path, job, shared, "acme")]).toMatchObject([how, { result: { fromCache: true } }]);
    expect([how, await run(path, job, shared, "globex")]).toMatchObject([how, { result: { fromCache: false } }]);
  }
  const [hopKey, ownKey] = [newKey(), newKey()];
  shared.origin.on("/to-a-session", (reply) =>
    reply.send({ status: 302, reason: "Found", headers: { "Set-Cookie": "s=1", Location: "/session;s=1" } }),
  );
  shared.origin.on("/session;s=1", (reply) => reply.send({ body: "a session's" }));
  await run("/to-a-session", want(hopKey), shared, "acme");
  expect(await run("/to-a-session", want(hopKey), shared, "acme")).toMatchObject({ result: { fromCache: true } });
  expect(await run("/to-a-session", want(hopKey), shared, "globex")).toMatchObject({ result: { fromCache: false } });
  shared.origin.on("/turned-public", (reply) =>
    reply.request.headers["if-none-match"] === undefined
      ? reply.send({ headers: { ETag: '"1"', "Cache-Control": "private" }, body: "one caller's" })
      : reply.send({ status: 304, reason: "Not Modified", headers: { "Cache-Control": "public" } }),
  );
  await run("/turned-public", want(ownKey), shared, "acme");
  await age(ownKey, shared);
  expect(await run("/turned-public", want(ownKey), shared, "acme")).toMatchObject({ result: { fromCache: true } });
  expect(await run("/turned-public", want(ownKey), shared, "globex")).toMatchObject({ result: { fromCache: false } });
  const key = newKey();
  shared.origin.on("/everybodys", (reply) =>
    reply.send({ headers: { "Cache-Control": "public" }, body: "everybody's" }),
  );
  const first = await run("/everybodys", want(key), shared, "acme");
  const other = await run("/everybodys", want(key), shared, "globex");
  expect(other).toMatchObject({ result: { fromCache: true, sha256: first.result?.sha256 } });
  expect(other.result?.artifactId).not.toBe(first.result?.artifactId);
  expect(requestsOf("/everybodys", shared)).toHaveLength(1);
  expect(await entriesOf(key, shared)).toMatchObject([{ caller_id: "" }]);
});

test("A7 a HEAD's answer is kept and taken without bytes", async () => {
  const key = newKey();
  rig.origin.on("/head", (reply) => reply.send({ headers: { "Content-Length": "5", "X-A": "b" } }));
  const target = { url: `http://127.0.0.1:${rig.origin.port}/head`, method: "HEAD", headers: {} };
  await run("/head", want(key, { target }));
  const job = await run("/head", want(key, { target, maxBodyBytes: 1 }));
  expect(job).toMatchObject({ result: { fromCache: true, artifactId: null, sizeBytes: 0, headers: { "x-a": "b" } } });
  expect(requestsOf("/head")).toHaveLength(1);
});

test("A7 jobs of a key that only fails end one after the other, each right after the one before it", async () => {
  const key = newKey();
  rig.origin.on("/never", (reply) => reply.send({ status: 404, reason: "Not Found", body: "no" }));
  const startedAt = performance.now();
  const ids = await Promise.all(Array.from({ length: 16 }, () => rig.submit("/never", want(key))));
  const jobs = await Promise.all(ids.map((id) => untilEnded(rig, id)));
  expect(jobs.map((job) => job.failure?.code)).toEqual(Array(16).fill("NOT_FOUND"));
  expect(requestsOf("/never")).toHaveLength(16);
  // By themselves they would come once a second.
  expect(performance.now() - startedAt).toBeLessThan(10_000);
});
