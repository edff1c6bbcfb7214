import { createHash, randomBytes } from "node:crypto";
import { PassThrough, Readable } from "node:stream";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type PutObjectCommandInput,
} from "@aws-sdk/client-s3";
import { type S3Server, startS3 } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { clientOf } from "./s3-clients.ts";

function put(server: S3Server, more: Partial<PutObjectCommandInput> = {}): PutObjectCommand {
  return new PutObjectCommand({ Bucket: server.bucket, Key: "key", Body: "hello world", ...more });
}

const digest = (algorithm: string, text: string) => createHash(algorithm).update(text).digest("base64");

describe("puts", () => {
  it("what came with the bytes comes back with them", async () => {
    await using server = await startS3({ now: () => Date.UTC(2030, 0, 2) });
    await server.plant("key", "hello world", { sha256: "abc" });
    const [view] = server.objects().values();
    expect(view).toEqual({
      sizeBytes: 11,
      sha256: createHash("sha256").update("hello world").digest("hex"),
      metadata: { sha256: "abc" },
      contentType: undefined,
      storedAt: new Date(Date.UTC(2030, 0, 2)),
    });
  });

  it("checksums that are right are accepted, and given back when asked for", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    const sums = { ContentMD5: digest("md5", "hello world"), ChecksumSHA256: digest("sha256", "hello world") };
    const done = await client.send(put(server, { ...sums, ContentType: "text/plain", CacheControl: "no-store" }));
    expect(done.ETag).toBe('"5eb63bbbe01eeed093cb22bb8f5acdc3"');
    const head = new HeadObjectCommand({ Bucket: server.bucket, Key: "key", ChecksumMode: "ENABLED" });
    expect(await client.send(head)).toMatchObject({
      ContentType: "text/plain",
      CacheControl: "no-store",
      ChecksumSHA256: sums.ChecksumSHA256,
    });
    using ordinary = clientOf(server, { checksums: "WHEN_SUPPORTED" });
    await ordinary.send(put(server, { Key: "crc32" }));
    expect(server.requests().at(-1)?.headers["x-amz-checksum-crc32"]).toBe("DUoRhQ==");
  });

  it.each([
    ["an MD5 of other bytes", { ContentMD5: digest("md5", "other") }, "BadDigest"],
    ["no MD5 at all", { ContentMD5: "abc" }, "InvalidDigest"],
    ["a SHA-256 of other bytes", { ChecksumSHA256: digest("sha256", "other") }, "BadDigest"],
    ["a CRC32 of other bytes", { ChecksumCRC32: "AAAAAA==" }, "BadDigest"],
    ["a checksum that is none", { ChecksumSHA256: "abc" }, "InvalidRequest"],
    ["a checksum that is not known here", { ChecksumCRC32C: "AAAAAA==" }, "NotImplemented"],
    ["a key that is too long", { Key: "k".repeat(1025) }, "KeyTooLongError"],
    ["too much metadata", { Metadata: { a: "x".repeat(2048) } }, "MetadataTooLarge"],
    ["a condition that is not known here", { IfMatch: '"abc"' }, "NotImplemented"],
    ["another bucket", { Bucket: "another" }, "NoSuchBucket"],
  ])("refused, nothing stored: %s", async (_what, more, code) => {
    await using server = await startS3();
    using client = clientOf(server);
    await expect(client.send(put(server, more))).rejects.toMatchObject({ Code: code });
    expect(server.objects().size).toBe(0);
  });

  it("a body in aws-chunked coding is not stored as if the coding were its bytes", async () => {
    await using server = await startS3();
    using client = clientOf(server, { checksums: "WHEN_SUPPORTED" });
    const stream = put(server, { Body: Readable.from(["hello world"]), ContentLength: 11 });
    await expect(client.send(stream)).rejects.toMatchObject({ Code: "NotImplemented" });
    expect(server.objects().size).toBe(0);
  });

  it("a body without a length is refused", async () => {
    await using server = await startS3();
    using client = clientOf(server, {
      tamper: (request) => {
        delete request.headers["content-length"];
        request.headers["transfer-encoding"] = "chunked";
      },
    });
    // The length is signed when it is there, so it is left out of what is signed.
    const stream = put(server, { Body: Readable.from(["hello world"]) });
    await expect(client.send(stream)).rejects.toMatchObject({ Code: "MissingContentLength" });
  });

  it("a put on the condition that there is none replaces nothing", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await client.send(put(server, { IfNoneMatch: "*" }));
    const again = client.send(put(server, { IfNoneMatch: "*", Body: "other" }));
    await expect(again).rejects.toMatchObject({ Code: "PreconditionFailed", $metadata: { httpStatusCode: 412 } });
    expect((await server.bytes("key")).toString()).toBe("hello world");
    await client.send(put(server, { Body: "other" }));
    expect((await server.bytes("key")).toString()).toBe("other");
  });

  it.each([
    ["PRECONDITION", "PreconditionFailed", "second"],
    ["CONFLICT", "ConditionalRequestConflict", "first"],
  ] as const)("of two conditional puts at once one wins: %s", async (racing, code, kept) => {
    await using server = await startS3({ racing });
    using client = clientOf(server);
    const first = new PassThrough();
    first.write("fir");
    const race = [client.send(put(server, { Body: first, ContentLength: 5, IfNoneMatch: "*" }))];
    await server.waitForArrival(({ bytesReceived }) => bytesReceived === 3);
    race.push(client.send(put(server, { Body: "second", IfNoneMatch: "*" })));
    await server.waitFor(() => true);
    first.end("st");
    const [one, other] = await Promise.allSettled(race);
    const lost = kept === "first" ? other : one;
    expect(lost).toMatchObject({ status: "rejected", reason: { Code: code } });
    expect((await server.bytes("key")).toString()).toBe(kept);
    // Afterwards the key is free of the race.
    server.remove("key");
    await client.send(put(server, { IfNoneMatch: "*" }));
  });
});

describe("reads and removals", () => {
  it("ranges are cut out, and refused past the end", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await server.plant("key", "hello world");
    const read = (Range: string) => client.send(new GetObjectCommand({ Bucket: server.bucket, Key: "key", Range }));
    const middle = await read("bytes=4-6");
    expect(middle).toMatchObject({
      ContentLength: 3,
      ContentRange: "bytes 4-6/11",
      $metadata: { httpStatusCode: 206 },
    });
    expect(await middle.Body?.transformToString()).toBe("o w");
    expect(await (await read("bytes=-2")).Body?.transformToString()).toBe("ld");
    await expect(read("bytes=11-")).rejects.toMatchObject({ Code: "InvalidRange", $metadata: { httpStatusCode: 416 } });
  });

  it("an empty object is an object", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    await client.send(put(server, { Body: "", ContentLength: 0 }));
    const got = await client.send(new GetObjectCommand({ Bucket: server.bucket, Key: "key" }));
    expect(got.ContentLength).toBe(0);
    expect(await got.Body?.transformToString()).toBe("");
  });

  it("what is not there is said to be missing, and can be removed all the same", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    const place = { Bucket: server.bucket, Key: "key" };
    await expect(client.send(new GetObjectCommand(place))).rejects.toMatchObject({ name: "NoSuchKey" });
    await expect(client.send(new HeadObjectCommand(place))).rejects.toMatchObject({
      name: "NotFound",
      $metadata: { httpStatusCode: 404 },
    });
    await server.plant("key", "hello world");
    for (const _time of [1, 2]) {
      const gone = await client.send(new DeleteObjectCommand(place));
      expect(gone.$metadata.httpStatusCode).toBe(204);
    }
    expect(server.objects().size).toBe(0);
  });

  it("damage shows in the bytes, and only there", async () => {
    await using server = await startS3();
    await server.plant("flipped", "hello");
    await server.plant("cut", "hello");
    await server.damage("flipped");
    await server.damage("cut", "TRUNCATE");
    expect((await server.bytes("flipped")).toString("latin1")).toBe("hell\x90");
    expect((await server.bytes("cut")).toString()).toBe("hell");
    expect(server.objects().get("cut")?.sizeBytes).toBe(4);
    expect(server.objects().get("flipped")?.sha256).toBe(createHash("sha256").update("hello").digest("hex"));
    await expect(server.damage("none")).rejects.toThrow("holds no none");
  });
});

describe("listings", () => {
  const KEYS = ["a", "a b+c%20&<>\"'", "a/\u{1F600}", "a/b", "b", "ba"];

  it("pages follow each other, in the order of UTF-8, without losing or doubling a key", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    for (const key of KEYS) await server.plant(key, key);
    const seen: (string | undefined)[] = [];
    let ContinuationToken: string | undefined;
    do {
      const page = await client.send(
        new ListObjectsV2Command({ Bucket: server.bucket, MaxKeys: 2, ContinuationToken, EncodingType: "url" }),
      );
      expect(page.KeyCount).toBe(page.Contents?.length);
      seen.push(...(page.Contents ?? []).map(({ Key }) => decodeURIComponent(Key ?? "")));
      ContinuationToken = page.NextContinuationToken;
      expect(page.IsTruncated).toBe(ContinuationToken !== undefined);
      // What goes between two pages is not missed by the rest.
      server.remove("a");
    } while (ContinuationToken !== undefined);
    expect(seen).toEqual(KEYS.toSorted((one, other) => Buffer.compare(Buffer.from(one), Buffer.from(other))));
  });

  it("a prefix, a beginning and a size hold", async () => {
    await using server = await startS3();
    using client = clientOf(server);
    for (const key of KEYS) await server.plant(key, key);
    const storedAt = new Date("2026-01-02T03:04:05.000Z");
    server.setStoredAt("ba", storedAt);
    const list = async (input: object) => client.send(new ListObjectsV2Command({ Bucket: server.bucket, ...input }));
    const keys = async (input: object) => (await list(input)).Contents?.map(({ Key }) => Key);
    expect(await keys({ Prefix: "a/" })).toEqual(["a/b", "a/\u{1F600}"]);
    expect(await keys({ StartAfter: "a/b" })).toEqual(["a/\u{1F600}", "b", "ba"]);
    expect(await keys({ Prefix: "b", StartAfter: "b" })).toEqual(["ba"]);
    expect(await keys({ Prefix: "a", StartAfter: "b" })).toBeUndefined();
    expect(await list({ MaxKeys: 0 })).toMatchObject({ KeyCount: 0, IsTruncated: false });
    expect((await list({ Prefix: "ba" })).Contents).toEqual([
      expect.objectContaining({ Key: "ba", Size: 2, LastModified: storedAt }),
    ]);
    await expect(list({ ContinuationToken: "bm9uZQ==" })).rejects.toMatchObject({ Code: "InvalidArgument" });
  });
});

describe("OSS", () => {
  it("the bucket belongs into the host", async () => {
    await using server = await startS3({ dialect: "OSS" });
    using inPath = clientOf(server);
    await expect(inPath.send(put(server))).rejects.toMatchObject({ Code: "SecondLevelDomainForbidden" });
    using client = clientOf(server, { addressing: "VIRTUAL_HOST" });
    const done = await client.send(put(server));
    expect(done.ETag).toBe('"5EB63BBBE01EEED093CB22BB8F5ACDC3"');
    expect(server.requests().at(-1)?.responseHeaders["x-oss-request-id"]).toMatch(/^[0-9A-F]{16}$/);
  });

  it("only its own header keeps a put from replacing", async () => {
    await using server = await startS3({ dialect: "OSS" });
    using client = clientOf(server, { addressing: "VIRTUAL_HOST" });
    await client.send(put(server));
    await client.send(put(server, { IfNoneMatch: "*", Body: "replaced" }));
    expect((await server.bytes("key")).toString()).toBe("replaced");
    const forbid = put(server, { Body: "again" });
    forbid.middlewareStack.add(
      (next) => (args) => {
        (args.request as { headers: Record<string, string> }).headers["x-oss-forbid-overwrite"] = "true";
        return next(args);
      },
      { step: "build" },
    );
    await expect(client.send(forbid)).rejects.toMatchObject({
      Code: "FileAlreadyExists",
      EC: "0026-00000025",
      $metadata: { httpStatusCode: 409 },
    });
    expect((await server.bytes("key")).toString()).toBe("replaced");
  });

  it("a body in aws-chunked coding is refused as OSS refuses it", async () => {
    await using server = await startS3({ dialect: "OSS" });
    using client = clientOf(server, { addressing: "VIRTUAL_HOST", checksums: "WHEN_SUPPORTED" });
    const stream = put(server, { Body: Readable.from(["hello world"]), ContentLength: 11 });
    await expect(client.send(stream)).rejects.toMatchObject({ Code: "InvalidArgument", EC: "0017-00000804" });
  });
});

it("random bodies of many sizes come back as they went in", async () => {
  await using server = await startS3();
  using client = clientOf(server);
  for (const size of [1, 1023, 65_536, 65_537, 1_000_003]) {
    const Body = randomBytes(size);
    await client.send(put(server, { Body }));
    const got = await client.send(new GetObjectCommand({ Bucket: server.bucket, Key: "key" }));
    expect(Buffer.from((await got.Body?.transformToByteArray()) ?? []).equals(Body)).toBe(true);
  }
});
