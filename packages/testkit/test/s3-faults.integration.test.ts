import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { S3_FAULTS, type S3Fault, type S3Server, startS3 } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { clientOf } from "./s3-clients.ts";

const put = (server: S3Server, Body: string | Readable = "hello world", more: object = {}) =>
  new PutObjectCommand({ Bucket: server.bucket, Key: "key", Body, ...more });
const get = (server: S3Server) => new GetObjectCommand({ Bucket: server.bucket, Key: "key" });

describe("faults", () => {
  it.each([
    [S3_FAULTS.INTERNAL_ERROR, 500, "InternalError"],
    [S3_FAULTS.SLOW_DOWN, 503, "SlowDown"],
    [S3_FAULTS.DISK_FULL, 507, "XMinioStorageFull"],
    [S3_FAULTS.FORBIDDEN, 403, "AccessDenied"],
    [{ kind: "STATUS", status: 409, code: "ConditionalRequestConflict" }, 409, "ConditionalRequestConflict"],
  ] as const)("a put meets %o once, and the next one goes through", async (fault, status, code) => {
    await using server = await startS3();
    using client = clientOf(server);
    const set = server.fail({ operation: "PutObject" }, fault);
    await expect(client.send(put(server))).rejects.toMatchObject({ Code: code, $metadata: { httpStatusCode: status } });
    expect(server.objects().size).toBe(0);
    await client.send(put(server));
    expect(set.hits).toBe(1);
    expect(server.objects().size).toBe(1);
  });

  it("a wish to go slower says for how long", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    server.fail({}, { ...S3_FAULTS.SLOW_DOWN, retryAfterSeconds: 7 });
    await expect(client.send(get(server))).rejects.toMatchObject({ $response: { headers: { "retry-after": "7" } } });
  });

  it.each([
    [{ kind: "CUT_BEFORE_HEAD" }, 0],
    [{ kind: "LOSE_ANSWER" }, 1],
    [{ kind: "CUT_REQUEST", afterBytes: 5 }, 0],
  ] as const)("a put that is cut by %o has stored %s objects", async (fault, stored) => {
    await using server = await startS3();
    using client = clientOf(server);
    server.fail({ operation: "PutObject" }, fault);
    await expect(client.send(put(server))).rejects.toMatchObject({ code: "ECONNRESET" });
    const [seen] = await server.waitFor(() => true);
    expect(seen).toMatchObject({ status: null, bytesSent: 0 });
    expect(server.objects().size).toBe(stored);
    await client.send(put(server));
  });

  it("a put whose sender hangs up stores nothing, and takes the connection with it", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    const body = new PassThrough();
    body.write("half");
    const abort = new AbortController();
    const sent = client.send(put(server, body, { ContentLength: 8 }), { abortSignal: abort.signal });
    await server.waitForArrival(({ bytesReceived }) => bytesReceived === 4);
    abort.abort();
    await expect(sent).rejects.toMatchObject({ name: "AbortError" });
    const [seen] = await server.waitFor(() => true);
    expect(seen).toMatchObject({ status: null, bytesReceived: 4 });
    expect(server.objects().size).toBe(0);
  });

  it("an answer is cut, or stalls, after so many bytes", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await server.plant("key", "x".repeat(200_000));
    server.fail({ operation: "GetObject" }, { kind: "CUT_ANSWER", afterBytes: 70_000 });
    const cut = await client.send(get(server));
    expect(cut.ContentLength).toBe(200_000);
    let came = 0;
    const reading = (async () => {
      for await (const chunk of cut.Body as Readable) came += (chunk as Buffer).length;
    })();
    await expect(reading).rejects.toMatchObject({ code: "ECONNRESET" });
    expect(came).toBe(70_000);

    server.fail({ operation: "GetObject" }, { kind: "STALL_ANSWER", afterBytes: 1000 });
    const stalled = (await client.send(get(server))).Body as Readable;
    const [first] = (await stalled.take(1).toArray()) as Buffer[];
    expect(first?.length).toBe(1000);
    expect(server.requests().at(-1)).toMatchObject({ totalMs: null, bytesSent: 1000 });
    stalled.destroy();
    const ended = await server.waitFor(({ operation }) => operation === "GetObject", 2);
    expect(ended.map(({ bytesSent }) => bytesSent)).toEqual([70_000, 1000]);
  });

  it("an answer that is held comes when it is let go, and one that hangs never does", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    let letGo = (): void => undefined;
    const held = server.fail({}, { kind: "DELAY", until: new Promise<void>((resolve) => (letGo = resolve)) });
    const storing = client.send(put(server));
    await held.reached();
    expect(server.objects().size).toBe(0);
    letGo();
    await storing;
    expect(server.objects().size).toBe(1);

    const hung = server.fail({ key: /^k/ }, { kind: "HANG" });
    const abort = new AbortController();
    const waiting = client.send(put(server, "other"), { abortSignal: abort.signal });
    await server.waitForArrival(({ bytesReceived }) => bytesReceived === 5);
    expect(hung.hits).toBe(1);
    abort.abort();
    await expect(waiting).rejects.toMatchObject({ name: "AbortError" });
    expect((await server.bytes("key")).toString()).toBe("hello world");
  });

  it("a listing's document breaks off", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await server.plant("key", "hello");
    server.fail({ operation: "ListObjectsV2" }, { kind: "TRUNCATE_XML" });
    await expect(client.send(new ListObjectsV2Command({ Bucket: server.bucket }))).rejects.toThrow();
  });

  it("a completion fails behind a 200, as S3's can", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    const place = { Bucket: server.bucket, Key: "key" };
    const { UploadId } = await client.send(new CreateMultipartUploadCommand(place));
    const part = await client.send(new UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body: "part" }));
    const MultipartUpload = { Parts: [{ PartNumber: 1, ETag: part.ETag }] };
    const complete = () => client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload }));
    server.fail({ operation: "CompleteMultipartUpload" }, { kind: "ERROR_IN_OK", code: "InternalError" });
    await expect(complete()).rejects.toMatchObject({ Code: "InternalError" });
    expect(server.requests().at(-1)).toMatchObject({ status: 200, code: "InternalError" });
    expect(server.objects().size).toBe(0);
    await complete();
    expect(server.objects().size).toBe(1);
  });

  it("a fault meets only what it is for, as often as it says, until it is lifted", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await server.plant("key", "hello");
    const fault: S3Fault = S3_FAULTS.INTERNAL_ERROR;
    const set = server.fail({ operation: ["DeleteObject", "HeadObject"], key: "key", times: Infinity }, fault);
    const place = { Bucket: server.bucket, Key: "key" };
    await client.send(get(server));
    await client.send(new DeleteObjectCommand({ ...place, Key: "other" }));
    for (const command of [
      new DeleteObjectCommand(place),
      new HeadObjectCommand(place),
      new DeleteObjectCommand(place),
    ]) {
      await expect(client.send(command)).rejects.toMatchObject({
        $metadata: { httpStatusCode: 500 },
      });
    }
    expect(set.hits).toBe(3);
    set.lift();
    await client.send(new DeleteObjectCommand(place));
    expect(server.objects().size).toBe(0);
  });

  it("whoever signs wrong meets no fault", async () => {
    await using server = await startS3();
    using stranger = clientOf(server, { secretAccessKey: "another" });
    const set = server.fail({}, S3_FAULTS.INTERNAL_ERROR);
    await expect(stranger.send(put(server))).rejects.toMatchObject({ Code: "SignatureDoesNotMatch" });
    expect(set.hits).toBe(0);
  });
});

it("a server that goes down comes back on its port with its objects and uploads", async () => {
  await using server = await startS3();
  using client = clientOf(server);
  await client.send(put(server));
  await client.send(new CreateMultipartUploadCommand({ Bucket: server.bucket, Key: "key" }));
  expect(server.connections()).toBe(1);
  server.fail({ operation: "GetObject" }, { kind: "HANG" });
  const hung = client.send(get(server));
  await server.waitForArrival(({ operation }) => operation === "GetObject");
  const stopped = server.stop();
  await expect(hung).rejects.toMatchObject({ code: "ECONNRESET" });
  await stopped;
  await server.stop();
  expect(server.connections()).toBe(0);
  await expect(client.send(get(server))).rejects.toMatchObject({ code: "ECONNREFUSED" });
  await server.start();
  await server.start();
  expect(await (await client.send(get(server))).Body?.transformToString()).toBe("hello world");
  expect(server.uploads()).toHaveLength(1);
});

describe("bodies in a directory", () => {
  it("a large body passes through without being held in memory, in either direction", { timeout: 60_000 }, async () => {
    const directory = await mkdtemp(join(tmpdir(), "keble-s3-"));
    try {
      await using server = await startS3({ directory });
      using client = clientOf(server);
      const chunk = Buffer.alloc(256 * 1024, "x");
      const chunks = 512;
      let highest = 0;
      const measure = () => (highest = Math.max(highest, process.memoryUsage().arrayBuffers));
      async function* chunksOf() {
        for (let i = 0; i < chunks; i += 1) {
          measure();
          yield chunk;
        }
      }
      const before = process.memoryUsage().arrayBuffers;
      await client.send(put(server, Readable.from(chunksOf()), { ContentLength: chunk.length * chunks }));
      const hash = createHash("sha256");
      for await (const piece of (await client.send(get(server))).Body as Readable) {
        measure();
        hash.update(piece as Buffer);
      }
      expect(hash.digest("hex")).toBe(server.objects().get("key")?.sha256);
      expect(server.objects().get("key")?.sizeBytes).toBe(128 * 1024 * 1024);
      expect(highest - before).toBeLessThan(64 * 1024 * 1024);

      // A reader that stops reading stops the server's reading of its file, too.
      const idle = (await client.send(get(server))).Body as Readable;
      await once(idle, "readable");
      for (let times = 0; times < 20; times += 1) {
        await client.send(new HeadObjectCommand({ Bucket: server.bucket, Key: "key" }));
      }
      const [, stalled] = server.requests().filter(({ operation }) => operation === "GetObject");
      expect(stalled?.totalMs).toBeNull();
      expect(stalled?.bytesSent).toBeLessThan(32 * 1024 * 1024);
      idle.destroy();

      await client.send(new DeleteObjectCommand({ Bucket: server.bucket, Key: "key" }));
      await server.waitFor(({ operation }) => operation === "GetObject", 2);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it("what is being read outlives its removal, and goes afterwards", async () => {
    const directory = await mkdtemp(join(tmpdir(), "keble-s3-"));
    try {
      await using server = await startS3({ directory });
      using client = clientOf(server);
      const place = { Bucket: server.bucket, Key: "key" };
      const { UploadId } = await client.send(new CreateMultipartUploadCommand(place));
      const Parts: CompletedPart[] = [];
      for (const PartNumber of [1, 2]) {
        const part = { ...place, UploadId, PartNumber, Body: Buffer.alloc(5 * 1024 * 1024, "x") };
        Parts.push({ PartNumber, ETag: (await client.send(new UploadPartCommand(part))).ETag });
      }
      await client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } }));
      const reading = (await client.send(get(server))).Body as Readable;
      server.remove("key");
      expect((await buffer(reading)).length).toBe(10 * 1024 * 1024);
      await expect.poll(() => readdir(directory)).toEqual([]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });

  it("what was replaced, removed or never finished leaves no file", async () => {
    const directory = await mkdtemp(join(tmpdir(), "keble-s3-"));
    try {
      await using server = await startS3({ directory });
      using client = clientOf(server);
      await client.send(put(server, "one"));
      await client.send(put(server, "two"));
      await expect(client.send(put(server, "x", { ContentMD5: "1B2M2Y8AsgTpgAmY7PhCfg==" }))).rejects.toThrow();
      server.fail({}, { kind: "CUT_REQUEST", afterBytes: 1 });
      await expect(client.send(put(server, "three"))).rejects.toThrow();
      expect((await server.bytes("key")).toString()).toBe("two");
      await server.damage("key");
      expect((await server.bytes("key")).toString("latin1")).toBe("tw\x90");
      expect(await readdir(directory)).toHaveLength(1);
      server.remove("key");
      await expect.poll(() => readdir(directory)).toEqual([]);
    } finally {
      await rm(directory, { recursive: true, force: true });
    }
  });
});
