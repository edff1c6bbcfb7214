import { createHash } from "node:crypto";
import { createGate } from "@keble-scraper/testkit";
import { Webhook } from "standardwebhooks";
import { request } from "undici";
import { afterAll, expect, test } from "vitest";
import { jobFor, ledger, openRig, registerEndpoint } from "../stack-fixtures.ts";

const rig = await openRig();
const { api } = rig.stack;
afterAll(() => rig[Symbol.asyncDispose]());

test("a job goes through every service: fetched, kept, told by a signed callback, downloadable", async () => {
  const page = "<html><h1>real page</h1></html>";
  rig.origin.on("/start", (reply) => reply.send({ status: 301, headers: { Location: "/page" } }));
  rig.origin.on("/page", (reply) => reply.send({ headers: { "Content-Type": "text/html" }, body: page }));
  const { secret } = await registerEndpoint(rig, "orders", "/hook");
  const submitted = await api.submit(
    jobFor(rig, "/start", { callback: { endpoint: "orders" }, labels: { batch: "1" } }),
  );
  const job = await api.finished(submitted.id);
  const sha256 = createHash("sha256").update(page).digest("hex");
  expect(job).toMatchObject({
    status: "SUCCEEDED",
    result: {
      httpStatus: 200,
      finalUrl: `http://127.0.0.1:${rig.origin.port}/page`,
      redirects: [{ url: `http://127.0.0.1:${rig.origin.port}/start`, httpStatus: 301 }],
      sha256,
      sizeBytes: page.length,
    },
    callback: { endpoint: "orders" },
  });
  expect(await ledger(rig, job.id)).toMatchObject([{ outcome: "SUCCEEDED", ordinal: 1, failure: null }]);

  const call = await rig.receiver.waitFor((one) => one.path === "/hook");
  const headers = Object.fromEntries(call.headers.map(([name, value]) => [name.toLowerCase(), value]));
  const event = new Webhook(secret).verify(call.body.toString("utf8"), headers) as Record<string, unknown>;
  expect(event).toMatchObject({ type: "job.succeeded", data: { job: { id: job.id, status: "SUCCEEDED" } } });
  expect(headers["webhook-id"]).toBe(event["id"]);

  const content = await api.call("GET", `/v1/jobs/${job.id}/content`);
  expect(content.status).toBe(302);
  const location = String(content.headers["location"]);
  expect(location).toContain("x-keble-audit-id=");
  const download = await request(location);
  expect(await download.body.text()).toBe(page);
  // Stored pages never run where our own answers come from.
  expect(String(download.headers["content-disposition"])).toMatch(/^attachment/);
  const tampered = await request(location.replace(/x-keble-audit-id=[^&]+/, `x-keble-audit-id=${crypto.randomUUID()}`));
  expect(tampered.statusCode).toBe(403);
  await tampered.body.dump();
});

test("J7 twenty equal submits with one key at once are one job and one request at the origin", async () => {
  rig.origin.on("/once", (reply) => reply.send({ body: "once" }));
  const submit = () =>
    api.call("POST", "/v1/jobs", { body: jobFor(rig, "/once"), headers: { "idempotency-key": "twenty" } });
  const answers = await Promise.all(Array.from({ length: 20 }, submit));
  const ids = new Set(answers.map((answer) => (answer.body as { id: string }).id));
  expect(ids.size).toBe(1);
  expect(answers.filter((answer) => answer.headers["idempotent-replay"] === "true")).toHaveLength(19);
  const [id] = ids;
  await api.finished(id ?? "");
  expect(rig.origin.requests.filter((one) => one.path === "/once")).toHaveLength(1);
  const late = await submit();
  expect(late.status).toBe(200);
  const other = await api.call("POST", "/v1/jobs", {
    body: jobFor(rig, "/other"),
    headers: { "idempotency-key": "twenty" },
  });
  expect(other).toMatchObject({ status: 409, body: { error: { code: "IDEMPOTENCY_MISMATCH" } } });
});

test("A7 fifty equal submits at once make one request at the origin, and all get its answer", async () => {
  const gate = createGate();
  rig.origin.on("/popular", async (reply) => {
    await gate.opened;
    await reply.send({ headers: { ETag: '"v1"' }, body: "popular" });
  });
  const submitted = await Promise.all(
    Array.from({ length: 50 }, () => api.submit(jobFor(rig, "/popular", { freshness: "ONE_HOUR" }))),
  );
  gate.open();
  const jobs = await Promise.all(submitted.map(({ id }) => api.finished(id)));
  expect(rig.origin.requests.filter((one) => one.path === "/popular")).toHaveLength(1);
  const results = jobs.map((job) => job["result"] as { sha256: string; fromCache: boolean; ageSeconds?: number });
  const sha256 = createHash("sha256").update("popular").digest("hex");
  expect(new Set(results.map((result) => result.sha256))).toEqual(new Set([sha256]));
  expect(results.filter((result) => result.fromCache && result.ageSeconds !== undefined)).toHaveLength(49);
  const content = await api.call("GET", `/v1/jobs/${jobs[49]?.id ?? ""}/content`);
  const download = await request(String(content.headers["location"]));
  expect(await download.body.text()).toBe("popular");
  // Another URL, and a job that takes no stored answer, are fetched.
  await api.finished((await api.submit(jobFor(rig, "/popular?page=2", { freshness: "ONE_HOUR" }))).id);
  await api.finished((await api.submit(jobFor(rig, "/popular"))).id);
  expect(rig.origin.requests.filter((one) => one.path === "/popular")).toHaveLength(3);
});

test("J6 a cancel in mid-body closes the socket within 3 s and is told by its own event", async () => {
  const { secret } = await registerEndpoint(rig, "cancels", "/cancels");
  const [gate, closed] = [createGate(), createGate()];
  rig.origin.on("/half", async (reply) => {
    await reply.write("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf");
    gate.open();
    await reply.closed;
    closed.open();
  });
  const job = await api.submit(jobFor(rig, "/half", { callback: { endpoint: "cancels" } }));
  await gate.opened;
  const startedAt = performance.now();
  const cancelled = await api.call("POST", `/v1/jobs/${job.id}/cancel`);
  expect(cancelled).toMatchObject({ status: 200, body: { status: "CANCELLED", result: null, failure: null } });
  await closed.opened;
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  const call = await rig.receiver.waitFor((one) => one.path === "/cancels");
  const headers = Object.fromEntries(call.headers.map(([name, value]) => [name.toLowerCase(), value]));
  expect(new Webhook(secret).verify(call.body.toString("utf8"), headers)).toMatchObject({ type: "job.cancelled" });
  expect(await ledger(rig, job.id)).toMatchObject([{ outcome: "CANCELLED", failure: null }]);
  expect(await api.call("POST", `/v1/jobs/${job.id}/cancel`)).toMatchObject({ body: { status: "CANCELLED" } });
});

test("a submit that waits answers 200 with the finished job", async () => {
  rig.origin.on("/quick", (reply) => reply.send({ body: "quick" }));
  const answer = await api.call("POST", "/v1/jobs", { body: jobFor(rig, "/quick"), headers: { prefer: "wait=10" } });
  expect(answer).toMatchObject({ status: 200, body: { status: "SUCCEEDED" } });
  expect(answer.headers["preference-applied"]).toBe("wait=10");
});

test("a batch is answered in order, and its jobs all end", async () => {
  rig.origin.on("/batch", (reply) => reply.send({ body: "b" }));
  const answer = await api.call("POST", "/v1/jobs/batch", {
    body: { jobs: [jobFor(rig, "/batch"), { target: { url: "http://10.0.0.1/" } }, jobFor(rig, "/batch")] },
  });
  expect(answer.status).toBe(202);
  const { items } = answer.body as { items: { job?: { id: string }; error?: { code: string } }[] };
  expect(items.map((item) => item.error?.code ?? "accepted")).toEqual(["accepted", "TARGET_FORBIDDEN", "accepted"]);
  for (const item of items) {
    if (item.job !== undefined) expect(await api.finished(item.job.id)).toMatchObject({ status: "SUCCEEDED" });
  }
});

test("a robots.txt that disallows ends the job without touching the page", async () => {
  rig.origin.on("/robots.txt", (reply) => reply.send({ body: "User-agent: *\nDisallow: /private\n" }));
  rig.origin.on("/private/page", (reply) => reply.send({ body: "secret" }));
  const job = await api.submit(jobFor(rig, "/private/page", { robots: "RESPECT" }));
  expect(await api.finished(job.id)).toMatchObject({ status: "FAILED", failure: { code: "ROBOTS_DISALLOWED" } });
  expect(rig.origin.requests.some((one) => one.path === "/private/page")).toBe(false);
});
