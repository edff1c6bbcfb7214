import { createHash } from "node:crypto";
import { readdir, unlink } from "node:fs/promises";
import { join } from "node:path";
import { retireBlob } from "@keble-scraper/db/commands/artifacts";
import { cancelJob } from "@keble-scraper/db/commands/intake";
import type { Settings } from "@keble-scraper/service";
import { createGate, createTestSignals } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { openFetchRig, untilEnded } from "./worker-fixtures.ts";

test("a page is fetched, kept under its hash and told whole", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/page", (reply) =>
    reply.send({
      headers: { "Content-Type": "text/html; charset=utf-8", "Set-Cookie": ["a=1", "b=2"] },
      body: "<html><p>hello</p></html>",
    }),
  );
  await rig.startWorker();
  const job = await untilEnded(rig, await rig.submit("/page"));
  expect(job).toMatchObject({
    status: "SUCCEEDED",
    failure: null,
    limits: { attemptsUsed: 1 },
    result: {
      httpStatus: 200,
      sizeBytes: 25,
      redirects: [],
      contentType: { declared: "text/html; charset=utf-8", sniffed: "text/html" },
      headers: { "set-cookie": ["a=1", "b=2"] },
      route: "DIRECT",
      fromCache: false,
    },
  });
  expect(job.result?.sha256).toMatch(/^[0-9a-f]{64}$/);
  const stored = await readdir(localDirectory(rig.settings), { recursive: true });
  expect(stored.some((name) => name.includes(job.result?.sha256 ?? "none"))).toBe(true);
  expect(await rig.ledger(job.id)).toEqual(["SUCCEEDED"]);
});

test("equal pages of one caller are one artifact", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/same", (reply) => reply.send({ body: "same" }));
  await rig.startWorker();
  const ids = [await rig.submit("/same"), await rig.submit("/same"), await rig.submit("/same")];
  const jobs = await Promise.all(ids.map((id) => untilEnded(rig, id)));
  expect(new Set(jobs.map((job) => job.result?.artifactId)).size).toBe(1);
});

test("F2 a 503 is tried again on the same route until the budget is spent, and the last failure stays", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/down", (reply) => reply.send({ status: 503, reason: "Down", body: "no" }));
  await rig.startWorker();
  const job = await untilEnded(rig, await rig.submit("/down", { attemptBudget: 2 }));
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "HTTP_SERVER_ERROR", httpStatus: 503 } });
  expect(await rig.ledger(job.id)).toEqual(["FAILED", "FAILED"]);
  expect(rig.origin.requests).toHaveLength(2);
});

test("J5 a Retry-After past the deadline ends the job at once with the failure that asked for it", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/later", (reply) => reply.send({ status: 429, headers: { "Retry-After": "86400" }, body: "" }));
  await rig.startWorker();
  const job = await untilEnded(rig, await rig.submit("/later"));
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "RATE_LIMITED", disposition: "RETRY_AT" } });
  expect(await rig.ledger(job.id)).toEqual(["FAILED"]);
});

test("J5 a running job is aborted at its deadline and settles DEADLINE_EXCEEDED under its live lease", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/stall", (reply) => reply.closed);
  await rig.startWorker();
  const job = await untilEnded(rig, await rig.submit("/stall", { deadlineSeconds: 1 }));
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "DEADLINE_EXCEEDED" } });
  expect(await rig.ledger(job.id)).toEqual(["FAILED"]);
  await rig.origin.allClosed();
});

test("J6 a cancel whose hint was lost still closes the socket within 3 s, and the worker writes nothing", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/slow", async (reply) => {
    await reply.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    await reply.closed;
  });
  await rig.startWorker();
  const id = await rig.submit("/slow");
  await rig.origin.request(1);
  const startedAt = performance.now();
  await cancelJob(rig.database.commands, { id, callerId: "acme" }, { jobRetentionMs: 1_000_000 });
  // No hint was sent: the worker's own look at its tokens is what closes the socket.
  await rig.origin.allClosed();
  expect(performance.now() - startedAt).toBeLessThan(3_000);
  expect(await rig.read(id)).toMatchObject({ status: "CANCELLED", result: null, failure: null });
  expect(await rig.ledger(id)).toEqual(["CANCELLED"]);
});

test("O4 a drain settles what ends within the grace and hands back what does not, uncounted", async () => {
  await using rig = await openFetchRig();
  const gate = createGate();
  rig.origin.on("/quick", async (reply) => {
    await gate.opened;
    await reply.send({ body: "done" });
  });
  rig.origin.on("/never", (reply) => reply.closed);
  const worker = await rig.startWorker();
  const [quick, never] = [await rig.submit("/quick"), await rig.submit("/never")];
  await rig.origin.request(2);
  const stopped = worker.stop(300);
  gate.open();
  await stopped;
  expect(await rig.read(quick)).toMatchObject({ status: "SUCCEEDED" });
  expect(await rig.read(never)).toMatchObject({ finishedAt: null, limits: { attemptsUsed: 0 } });
  expect(await rig.ledger(never)).toEqual(["HANDED_BACK"]);
});

test("O4 a run that has sent nothing is released without a line in the ledger", async () => {
  await using rig = await openFetchRig();
  // A robots fetch that never answers: nothing of the job itself has been sent.
  rig.origin.on("/robots.txt", (reply) => reply.closed);
  const worker = await rig.startWorker();
  const id = await rig.submit("/page", { robots: "RESPECT" });
  await rig.origin.request(1);
  await worker.stop(0);
  expect(await rig.read(id)).toMatchObject({ finishedAt: null, limits: { attemptsUsed: 0 } });
  expect(await rig.ledger(id)).toEqual([]);
});

test("J2 a worker whose lease was taken over settles nothing", async () => {
  await using rig = await openFetchRig();
  const signals = createTestSignals();
  rig.origin.on("/page", (reply) => reply.send({ body: "late" }));
  using hold = signals.hold("settling");
  await rig.startWorker({ signals });
  const id = await rig.submit("/page");
  await hold.held;
  await rig.database.commands`update jobs set lease_token = gen_random_uuid() where id = ${id}`;
  hold.release();
  await signals.reached("settled");
  expect(await rig.read(id)).toMatchObject({ status: "RUNNING", result: null });
  expect(await rig.ledger(id)).toEqual([]);
});

test("J4 a process runs one job at a time whose last worker was lost, beside trusted ones", async () => {
  await using rig = await openFetchRig();
  const gate = createGate();
  let atOnce = 0;
  let most = 0;
  rig.origin.on("/suspect", async (reply) => {
    atOnce += 1;
    most = Math.max(most, atOnce);
    await gate.opened;
    atOnce -= 1;
    await reply.send({ body: "suspect" });
  });
  rig.origin.on("/trusted", (reply) => reply.send({ body: "trusted" }));
  const suspects = await Promise.all(Array.from({ length: 8 }, () => rig.submit("/suspect")));
  await rig.database.commands`update jobs set suspected_at = clock_timestamp()`;
  await rig.startWorker();
  await rig.origin.request(1);
  // Each of these takes a claim that the suspects could have come in by, were they let in.
  for (let count = 0; count < 5; count += 1) {
    expect(await untilEnded(rig, await rig.submit("/trusted"))).toMatchObject({ status: "SUCCEEDED" });
  }
  expect(most).toBe(1);
  gate.open();
  for (const id of suspects) expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED" });
  expect(most).toBe(1);
});

test("A1 the bytes are in the store before the row that names them is written", async () => {
  await using rig = await openFetchRig();
  const signals = createTestSignals();
  rig.origin.on("/page", (reply) => reply.send({ body: "durable" }));
  using hold = signals.hold("settling");
  await rig.startWorker({ signals });
  const id = await rig.submit("/page");
  await hold.held;
  const sha256 = createHash("sha256").update("durable").digest("hex");
  const stored = await readdir(localDirectory(rig.settings), { recursive: true });
  expect(stored.some((name) => name.includes(sha256))).toBe(true);
  expect(await rig.database.commands`select 1 from blobs`).toHaveLength(0);
  hold.release();
  expect(await untilEnded(rig, id)).toMatchObject({ result: { sha256 } });
});

test("A2 bytes that were seen and are gone by the settle are put and settled again under the same lease", async () => {
  await using rig = await openFetchRig();
  const signals = createTestSignals();
  rig.origin.on("/page", (reply) => reply.send({ body: "again" }));
  await rig.startWorker({ signals });
  await untilEnded(rig, await rig.submit("/page"));
  using hold = signals.hold("settling");
  const id = await rig.submit("/page");
  await hold.held;
  const sql = rig.database.commands;
  await sql`update artifacts set state = 'DELETED', blob_id = null, deleted_at = clock_timestamp()`;
  await sql`update blobs set state = 'DELETING'`;
  hold.release();
  expect(await untilEnded(rig, id)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  expect(await sql`select 1 from blobs where state = 'AVAILABLE'`).toHaveLength(1);
  expect(await rig.ledger(id)).toEqual(["SUCCEEDED"]);
});

// Left AVAILABLE, the blob would let every later fetch of these bytes skip its put.
test("A1 bytes that were lost and given up are stored anew by the next fetch of them", async () => {
  await using rig = await openFetchRig();
  const sql = rig.database.commands;
  rig.origin.on("/page", (reply) => reply.send({ body: "lost" }));
  await rig.startWorker();
  const first = await untilEnded(rig, await rig.submit("/page"));
  const [blob] = await sql<{ id: string; sha256: string; generation: string }[]>`
    select id, encode(sha256, 'hex') as sha256, generation from blobs`;
  const listStored = async () => {
    const names = await readdir(localDirectory(rig.settings), { recursive: true });
    return names.filter((name) => name.includes(blob!.sha256));
  };
  for (const name of await listStored()) await unlink(join(localDirectory(rig.settings), name));
  await retireBlob(sql, blob!, { kind: "MISSING", urlMs: 1_000, auditRetentionDays: 400 });

  const second = await untilEnded(rig, await rig.submit("/page"));
  expect(second.result?.sha256).toBe(first.result?.sha256);
  expect(second.result?.artifactId).not.toBe(first.result?.artifactId);
  const stored = await listStored();
  expect(stored).toHaveLength(1);
  expect(stored[0]).not.toContain(blob!.generation);
});

test("J2 an outcome that comes after the lease is lost leaves nothing in the spool", async () => {
  await using rig = await openFetchRig();
  const signals = createTestSignals();
  const body = "x".repeat(600_000);
  rig.origin.on("/large", (reply) => reply.send({ body }));
  using hold = signals.hold("run.ended");
  await rig.startWorker({ signals, env: { SCRAPER_LEASE_SECONDS: "4" } });
  const id = await rig.submit("/large");
  await hold.held;
  await rig.database.commands`update jobs set lease_token = gen_random_uuid() where id = ${id}`;
  // The next renewal does not return the lease.
  await signals.reached("renewed");
  hold.release();
  await signals.reached("outcome.discarded");
  const spool = rig.settings.fetching.spoolDirectory;
  expect((await readdir(spool)).filter((name) => name.startsWith("body-"))).toEqual([]);
  expect(await rig.ledger(id)).toEqual([]);
});

function localDirectory({ artifacts }: Pick<Settings, "artifacts">): string {
  if (artifacts.store.kind !== "LOCAL") throw new Error("the store is not a local directory");
  return artifacts.store.directory;
}
