import { createHash } from "node:crypto";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  type CompletedPart,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { type S3Server, startS3 } from "@keble-scraper/testkit";
import { expect, it } from "vitest";
import { clientOf } from "./s3-clients.ts";

async function begin(client: S3Client, server: S3Server, Key = "key"): Promise<string> {
  const command = new CreateMultipartUploadCommand({
    Bucket: server.bucket,
    Key,
    ContentType: "text/plain",
    Metadata: { sha256: "abc" },
  });
  return (await client.send(command)).UploadId ?? "";
}

async function send(client: S3Client, server: S3Server, UploadId: string, bodies: readonly string[]) {
  const parts: CompletedPart[] = [];
  for (const [i, Body] of bodies.entries()) {
    const command = new UploadPartCommand({ Bucket: server.bucket, Key: "key", UploadId, PartNumber: i + 1, Body });
    parts.push({ PartNumber: i + 1, ETag: (await client.send(command)).ETag });
  }
  return parts;
}

function complete(server: S3Server, UploadId: string, Parts: CompletedPart[], more: { IfNoneMatch?: "*" } = {}) {
  const place = { Bucket: server.bucket, Key: "key", UploadId };
  return new CompleteMultipartUploadCommand({ ...place, MultipartUpload: { Parts }, ...more });
}

it("parts become one object, in order, with the upload's metadata and a composite ETag", async () => {
  await using server = await startS3({ partBytesMin: 5 });
  using client = clientOf(server);
  const id = await begin(client, server);
  const bodies = ["first", "second", "3"];
  const parts = await send(client, server, id, bodies);
  expect(server.uploads()[0]?.parts).toEqual(
    new Map([
      [1, 5],
      [2, 6],
      [3, 1],
    ]),
  );
  expect(server.objects().size).toBe(0);
  const done = await client.send(complete(server, id, parts));
  const md5 = (data: string | Buffer) => createHash("md5").update(data).digest();
  expect(done.ETag).toBe(`"${md5(Buffer.concat(bodies.map(md5))).toString("hex")}-3"`);
  const place = { Bucket: server.bucket, Key: "key" };
  const head = await client.send(new HeadObjectCommand(place));
  expect(head).toMatchObject({
    ContentLength: 12,
    ContentType: "text/plain",
    Metadata: { sha256: "abc" },
    ETag: done.ETag,
  });
  const range = await client.send(new GetObjectCommand({ ...place, Range: "bytes=3-11" }));
  expect(await range.Body?.transformToString()).toBe("stsecond3");
  expect(server.objects().get("key")?.sha256).toBe(createHash("sha256").update(bodies.join("")).digest("hex"));
  expect(server.uploads()).toEqual([]);
});

it("a part that is sent again replaces the first, and a part that is not listed is left out", async () => {
  await using server = await startS3({ partBytesMin: 1 });
  using client = clientOf(server);
  const id = await begin(client, server);
  const [old] = await send(client, server, id, ["old"]);
  const parts = await send(client, server, id, ["new", "more"]);
  await expect(client.send(complete(server, id, [old!]))).rejects.toMatchObject({ Code: "InvalidPart" });
  await client.send(complete(server, id, parts.slice(0, 1)));
  expect((await server.bytes("key")).toString()).toBe("new");
});

it("a completion that is refused leaves the upload open", async () => {
  await using server = await startS3();
  using client = clientOf(server);
  const id = await begin(client, server);
  const parts = await send(client, server, id, ["small", "last"]);
  const refused = async (list: CompletedPart[], code: string, more: { IfNoneMatch?: "*" } = {}) =>
    expect(client.send(complete(server, id, list, more))).rejects.toMatchObject({ Code: code });
  await refused(parts, "EntityTooSmall");
  await refused(parts.toReversed(), "InvalidPartOrder");
  await refused([], "MalformedXML");
  await refused([{ PartNumber: 7, ETag: parts[0]!.ETag }], "InvalidPart");
  await server.plant("key", "there");
  await refused(parts.slice(1), "PreconditionFailed", { IfNoneMatch: "*" });
  expect(server.uploads()).toHaveLength(1);
  expect((await server.bytes("key")).toString()).toBe("there");
  server.remove("key");
  await client.send(complete(server, id, parts.slice(1), { IfNoneMatch: "*" }));
  expect((await server.bytes("key")).toString()).toBe("last");
});

it("an upload that was aborted or completed is not there any more, nor under another key", async () => {
  await using server = await startS3({ partBytesMin: 1 });
  using client = clientOf(server);
  const id = await begin(client, server);
  const parts = await send(client, server, id, ["part"]);
  const place = { Bucket: server.bucket, UploadId: id };
  const missing = { Code: "NoSuchUpload", $metadata: { httpStatusCode: 404 } };
  const abort = (Key: string) => client.send(new AbortMultipartUploadCommand({ ...place, Key }));
  await expect(abort("other")).rejects.toMatchObject(missing);
  await abort("key");
  await expect(abort("key")).rejects.toMatchObject(missing);
  await expect(client.send(complete(server, id, parts))).rejects.toMatchObject(missing);
  await expect(send(client, server, id, ["part"])).rejects.toMatchObject(missing);
  await expect(send(client, server, "none", ["part"])).rejects.toMatchObject(missing);
  const wrong = new UploadPartCommand({ ...place, Key: "key", PartNumber: 10_001, Body: "" });
  await expect(client.send(wrong)).rejects.toMatchObject({ Code: "InvalidArgument" });
});

it("open uploads are listed in pages, in key order, with the time they began", async () => {
  await using server = await startS3();
  using client = clientOf(server);
  const ids: string[] = [];
  for (const key of ["p/b", "p/a", "p/a", "q"]) ids.push(await begin(client, server, key));
  const began = new Date("2026-01-02T03:04:05.000Z");
  server.setInitiatedAt(ids[0]!, began);
  const seen: string[] = [];
  let markers: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } = {};
  for (let more: boolean | undefined = true; more === true;) {
    const page = await client.send(
      new ListMultipartUploadsCommand({ Bucket: server.bucket, Prefix: "p/", MaxUploads: 1, ...markers }),
    );
    seen.push(...(page.Uploads ?? []).map(({ Key, UploadId }) => `${Key} ${UploadId}`));
    if (page.Uploads?.[0]?.Key === "p/b") expect(page.Uploads[0].Initiated).toEqual(began);
    markers = { KeyMarker: page.NextKeyMarker, UploadIdMarker: page.NextUploadIdMarker };
    more = page.IsTruncated;
  }
  expect(seen).toEqual([...[`p/a ${ids[1]}`, `p/a ${ids[2]}`].toSorted(), `p/b ${ids[0]}`]);
});
