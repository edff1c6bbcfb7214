import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ApiJob, createGate, type OriginBehaviour, S3_FAULTS } from "@keble-scraper/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openStoreRig, PREFIX, residentMiB, type StoreRig, until } from "../store-fixtures.ts";
import { countLines, jobFor, ledger, QUICK_RECOVERY } from "../stack-fixtures.ts";

const MIB = 1024 * 1024;
const DAY_MS = 86_400_000;
const SIZES_MIB = process.env["KEBLE_LONG"] === "1" ? [256, 1024] : [256];
/** What a worker's memory may grow by, whatever a body's size. */
const GROWTH_MIB_MAX = 48;

let rig: StoreRig;

beforeAll(async () => {
  rig = await openStoreRig({
    ...QUICK_RECOVERY,
    SCRAPER_BODY_BYTES_MAX: String(1024 * MIB),
    SCRAPER_DOWNLOAD_URL_SECONDS: "5",
    SCRAPER_DRAIN_GRACE_SECONDS: "0.2",
    SCRAPER_SCRUB_OBJECTS_PER_MINUTE: "0",
  });
});

afterAll(async () => {
  await rig[Symbol.asyncDispose]();
});

/** Serves a text at a path of its own; what is kept of it will have this hash. */
function serve(text: string): { readonly path: string; readonly sha256: string; readonly key: RegExp } {
  const sha256 = createHash("sha256").update(text).digest("hex");
  const path = `/${sha256.slice(0, 16)}`;
  rig.origin.on(path, (reply) => reply.send({ body: text }));
  return { path, sha256, key: new RegExp(`^${PREFIX}/${sha256}/[^/]+$`) };
}

function keysOf(sha256: string): string[] {
  return [...rig.s3.objects().keys()].filter((key) => key.startsWith(`${PREFIX}/${sha256}/`));
}

async function submit(path: string, more: object = {}): Promise<string> {
  return (await rig.stack.api.submit(jobFor(rig, path, more))).id;
}

async function statusOf(id: string): Promise<string> {
  const { body } = await rig.stack.api.call("GET", `/v1/jobs/${id}`);
  return (body as ApiJob).status;
}

async function countDownloads(): Promise<number> {
  const [row] = await rig.sql<[{ count: number }]>`
    select count(*)::int as count from audit_events where action = 'artifact.download-signed'`;
  return row.count;
}

function content(id: string) {
  return rig.stack.api.call("GET", `/v1/jobs/${id}/content`);
}

test("A1 A6 bytes are in the bucket, private, and the link is the bucket's own and audited; its access log reconciles", async () => {
  const { path, sha256, key } = serve("kept in a bucket");
  const id = await submit(path);
  const job = await rig.stack.api.finished(id);
  expect(job).toMatchObject({ status: "SUCCEEDED", result: { sha256 } });
  const [name = ""] = keysOf(sha256);
  expect(name).toMatch(key);
  expect(await rig.s3.bytes(name)).toEqual(Buffer.from("kept in a bucket"));
  expect(rig.s3.objects().get(name)).toMatchObject({ contentType: "application/octet-stream", metadata: { sha256 } });
  expect((await fetch(`${rig.s3.url}/${rig.s3.bucket}/${name}`)).status).toBe(403);

  const { status, headers } = await content(id);
  const location = new URL(String(headers["location"]));
  expect(status).toBe(302);
  expect(location.origin).toBe(rig.s3.url);
  expect(location.pathname).toBe(`/${rig.s3.bucket}/${name}`);
  const auditId = location.searchParams.get("x-keble-audit-id") ?? "";
  const rows = await rig.sql`select 1 from audit_events where id = ${auditId}`;
  expect(rows).toHaveLength(1);
  const answer = await fetch(location);
  expect(answer.status).toBe(200);
  expect(await answer.text()).toBe("kept in a bucket");

  const directory = mkdtempSync(join(tmpdir(), "keble-access-log-"));
  try {
    const log = join(directory, "log");
    await rig.s3.waitFor((one) => one.operation === "GetObject" && one.signed === "QUERY");
    const reconcile = () => {
      writeFileSync(log, `${rig.s3.accessLog("S3").join("\n")}\n`);
      return rig.run("reconcile", "--format", "s3", log);
    };
    expect(await reconcile()).toMatchObject({ code: 0 });
    const unknown = "01890a5d-ac96-774b-bcce-b302099a8057";
    expect((await fetch(await rig.sign(name, unknown))).status).toBe(200);
    await rig.s3.waitFor((one) => one.operation === "GetObject" && one.signed === "QUERY", 2);
    const { code, output } = await reconcile();
    expect(code).toBe(1);
    expect(output).toContain(unknown);
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("A1 a put that a full, failing or slow store does not take costs its job time and no attempt; no job is done without its bytes", async () => {
  const { api } = rig.stack;
  const [full, failing, slow] = [serve("store full"), serve("store failing"), serve("store slow")];
  const through = createGate();
  const faults = [
    rig.s3.fail({ operation: "PutObject", key: full.key, times: Infinity }, S3_FAULTS.DISK_FULL),
    rig.s3.fail({ operation: "PutObject", key: failing.key, times: Infinity }, S3_FAULTS.INTERNAL_ERROR),
    rig.s3.fail({ operation: "PutObject", key: slow.key }, { kind: "DELAY", until: through.opened }),
  ];
  const away = countLines(rig, "attempt.store_away");
  const ids = await Promise.all([full, failing, slow].map(({ path }) => submit(path)));
  await Promise.all(faults.map((fault) => fault.reached()));
  await until("both puts' wait", () => (countLines(rig, "attempt.store_away") >= away + 2 ? true : undefined));
  expect(await Promise.all(ids.map(statusOf))).toEqual(["RUNNING", "RUNNING", "RUNNING"]);
  for (const fault of faults) fault.lift();
  const [fullId = "", failingId = "", slowId = ""] = ids;
  for (const id of [fullId, failingId]) {
    expect(await api.finished(id)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
    expect(await ledger(rig, id)).toMatchObject([{ outcome: "SUCCEEDED" }]);
  }
  expect(await statusOf(slowId)).toBe("RUNNING");
  expect(keysOf(slow.sha256)).toEqual([]);
  through.open();
  expect(await api.finished(slowId)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  for (const { sha256 } of [full, failing, slow]) expect(keysOf(sha256)).toHaveLength(1);
});

test("A3 A6 while the store is down a job waits, a link is 503 and unaudited, an erased object's row stays; all of it ends once the store is back", async () => {
  const { api } = rig.stack;
  const [erased, linked, fresh] = [serve("to be erased"), serve("to be read"), serve("fetched in vain")];
  const [erasedId, linkedId] = await Promise.all([submit(erased.path), submit(linked.path)]);
  await Promise.all([api.finished(erasedId), api.finished(linkedId)]);
  const audited = await countDownloads();
  expect((await api.call("DELETE", `/v1/jobs/${erasedId}`)).status).toBe(204);
  await until("the artifact's mark", async () => (await deletionOf(erased.sha256)) ?? undefined);
  const failing = rig.s3.fail({ operation: "HeadObject", times: Infinity }, S3_FAULTS.INTERNAL_ERROR);
  expect(await content(linkedId)).toMatchObject({ status: 503 });
  failing.lift();
  await rig.s3.stop();
  try {
    const waits = countLines(rig, "attempt.store_away");
    const freshId = await submit(fresh.path);
    const away = await content(linkedId);
    expect(away).toMatchObject({ status: 503, body: { error: { code: "DEPENDENCY_UNAVAILABLE" } } });
    expect(Number(away.headers["retry-after"])).toBeGreaterThan(0);
    expect(await countDownloads()).toBe(audited);
    await makeDue(erased.sha256);
    await until("a try to delete", async () => ((await deletionOf(erased.sha256))?.isDue === false ? true : undefined));
    await until("the put's wait", () => (countLines(rig, "attempt.store_away") > waits ? true : undefined));
    expect(await statusOf(freshId)).toBe("RUNNING");
    expect(await deletionOf(erased.sha256)).not.toBeNull();
    expect(keysOf(erased.sha256)).toHaveLength(1);
    await rig.s3.start();
    expect(await api.finished(freshId)).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  } finally {
    await rig.s3.start();
  }
  expect(await content(linkedId)).toMatchObject({ status: 302 });
  expect(await countDownloads()).toBe(audited + 1);
  await makeDue(erased.sha256);
  await until("the deletion's end", async () => ((await deletionOf(erased.sha256)) === null ? true : undefined));
  expect(keysOf(erased.sha256)).toEqual([]);
  expect((await content(erasedId)).status).toBe(404);
});

async function deletionOf(sha256: string): Promise<{ readonly isDue: boolean } | null> {
  const [row] = await rig.sql<[{ isDue: boolean }?]>`
    select due_at <= clock_timestamp() as "isDue" from object_deletions where sha256 = decode(${sha256}, 'hex')`;
  return row ?? null;
}

/** As if the time until the last link's end, or until the next try, had passed. */
async function makeDue(sha256: string): Promise<void> {
  await rig.sql`update object_deletions set due_at = clock_timestamp() where sha256 = decode(${sha256}, 'hex')`;
}

test("A1 a job that is cancelled during its put stays CANCELLED, and the listing scrub finds the object that no row names", async () => {
  const { path, sha256, key } = serve("cancelled on its way");
  const through = createGate();
  const slow = rig.s3.fail({ operation: "PutObject", key }, { kind: "DELAY", until: through.opened });
  const id = await submit(path);
  await slow.reached();
  expect(await rig.stack.api.call("POST", `/v1/jobs/${id}/cancel`)).toMatchObject({ body: { status: "CANCELLED" } });
  through.open();
  const [name = ""] = await until("the put's end", () => (keysOf(sha256).length > 0 ? keysOf(sha256) : undefined));
  expect(await statusOf(id)).toBe("CANCELLED");
  expect(await ledger(rig, id)).toMatchObject([{ outcome: "CANCELLED" }]);
  rig.s3.setStoredAt(name, new Date(Date.now() - 2 * DAY_MS));
  await rig.sql`update store_scrub set cursor = null, pass_started_at = null, pass_ended_at = null`;
  await until("the orphan's end", () => (keysOf(sha256).length === 0 ? true : undefined));
});

test("O4 a worker that is told to end during a slow put hands its job back uncounted, and leaves nothing in the bucket", async () => {
  const { path, sha256, key } = serve("drained on its way");
  const through = createGate();
  const slow = rig.s3.fail({ operation: "PutObject", key }, { kind: "DELAY", until: through.opened });
  const id = await submit(path);
  await slow.reached();
  const pid = rig.stack.kill("worker-fetch-1", "SIGTERM");
  await rig.stack.waitForRestart("worker-fetch-1", pid);
  const job = await rig.stack.api.finished(id);
  through.open();
  await rig.s3.waitFor((one) => one.operation === "PutObject" && key.test(one.key), 2);
  expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 1 } });
  expect(await ledger(rig, id)).toMatchObject([{ outcome: "HANDED_BACK" }, { outcome: "SUCCEEDED" }]);
  expect(keysOf(sha256)).toHaveLength(1);
});

/** So many MiB that differ from one another, one at a time. */
function generated(sizeMib: number): OriginBehaviour {
  return async (reply) => {
    await reply.write(`HTTP/1.1 200 OK\r\nContent-Length: ${sizeMib * MIB}\r\n\r\n`);
    const block = Buffer.alloc(MIB, `of ${sizeMib}`);
    for (let index = 0; index < sizeMib && !reply.isClosed(); index += 1) {
      block.writeUInt32BE(index);
      await reply.write(block);
    }
  };
}

test.each(SIZES_MIB)("W9 a body of %i MiB goes from its target to the bucket in bounded memory", async (sizeMib) => {
  const { api } = rig.stack;
  // What a first job loads is not the body's.
  await api.finished(await submit(serve(`before ${sizeMib}`).path));
  const pid = rig.stack.pidOf("worker-fetch-1");
  const before = residentMiB(pid);
  rig.origin.on("/large", generated(sizeMib));
  const job = await api.finished(
    await submit("/large", { limits: { maxBodyBytes: sizeMib * MIB, deadline: "ONE_HOUR" } }),
    100_000,
  );
  const after = residentMiB(pid);
  expect(job).toMatchObject({ status: "SUCCEEDED" });
  expect(rig.stack.pidOf("worker-fetch-1")).toBe(pid);
  const { sha256 } = job["result"] as { sha256: string };
  const [name = ""] = keysOf(sha256);
  expect(rig.s3.objects().get(name)?.sizeBytes).toBe(sizeMib * MIB);
  expect(after.peak - before.now).toBeLessThan(GROWTH_MIB_MAX);
});

test("A1 a worker that is killed within an upload leaves parts, which maintenance removes, and a job that is done again", async () => {
  const { api, kill } = rig.stack;
  rig.origin.on("/parts", generated(20));
  const stuck = rig.s3.fail({ operation: "UploadPart" }, { kind: "HANG" });
  const id = await submit("/parts", { limits: { maxBodyBytes: 20 * MIB } });
  await stuck.reached();
  kill("worker-fetch-1");
  const [upload, ...others] = rig.s3.uploads();
  if (upload === undefined) throw new Error("the killed worker left nothing");
  expect(others).toEqual([]);
  rig.s3.setInitiatedAt(upload.uploadId, new Date(Date.now() - 2 * DAY_MS));
  // Strays are looked for once an hour, and by each process when it starts.
  kill("worker-maintenance");
  const job = await api.finished(id);
  expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 2 } });
  await until("the stray's end", () => (rig.s3.uploads().length === 0 ? true : undefined));
  const { sha256 } = job["result"] as { sha256: string };
  expect(keysOf(sha256)).toHaveLength(1);
});
