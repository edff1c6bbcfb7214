import { request as httpRequest } from "node:http";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  type S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { lookUpLocally, type S3Server, startS3 } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { clientOf, type SignedHttpRequest } from "./s3-clients.ts";

const KEY = "some prefix/ä+b (1)!'*.bin";

/** A GET with node's own client, which sends the target as it is. Resolves with the status, the headers and the body. */
async function get(url: string, method = "GET", headers: Record<string, string> = {}) {
  return new Promise<{ status: number; headers: Record<string, unknown>; body: string }>((resolve, reject) => {
    const asked = httpRequest(url, { method, headers, lookup: lookUpLocally }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** A presigned GET that carries an audit id inside its signature, as downloads do. */
async function signDownload(client: S3Client, server: S3Server, expiresIn = 300): Promise<string> {
  const command = new GetObjectCommand({
    Bucket: server.bucket,
    Key: KEY,
    ResponseContentType: "text/csv; charset=utf-8",
    ResponseContentDisposition: `attachment; filename="a b.csv"`,
  });
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as SignedHttpRequest;
      request.query = { ...request.query, "x-keble-audit-id": "01890000-0000-7000-8000-000000000001" };
      return next(args);
    },
    { step: "build", name: "auditId", priority: "low" },
  );
  return getSignedUrl(client, command, { expiresIn });
}

describe.each(["PATH", "VIRTUAL_HOST"] as const)("the bucket in the %s", (addressing) => {
  it("what the SDK signs is accepted, for every operation", async () => {
    await using server = await startS3({ partBytesMin: 1 });
    using client = clientOf(server, { addressing });
    const place = { Bucket: server.bucket, Key: KEY };
    await client.send(new HeadBucketCommand({ Bucket: server.bucket }));
    await client.send(
      new PutObjectCommand({ ...place, Body: "hello world", Metadata: { sha256: "abc", other: "a  b" } }),
    );
    const got = await client.send(new GetObjectCommand({ ...place, Range: "bytes=6-" }));
    expect(await got.Body?.transformToString()).toBe("world");
    expect((await client.send(new HeadObjectCommand(place))).ContentLength).toBe(11);
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: server.bucket, Prefix: "some prefix/" }));
    expect(Contents?.map((object) => object.Key)).toEqual([KEY]);
    await client.send(new DeleteObjectCommand(place));

    const { UploadId } = await client.send(new CreateMultipartUploadCommand(place));
    const first = await client.send(new UploadPartCommand({ ...place, UploadId, PartNumber: 1, Body: "a" }));
    const { Uploads } = await client.send(new ListMultipartUploadsCommand({ Bucket: server.bucket }));
    expect(Uploads?.map((upload) => upload.UploadId)).toEqual([UploadId]);
    const Parts = [{ PartNumber: 1, ETag: first.ETag }];
    await client.send(new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } }));
    const other = await client.send(new CreateMultipartUploadCommand(place));
    await client.send(new AbortMultipartUploadCommand({ ...place, UploadId: other.UploadId }));
    expect(server.uploads()).toEqual([]);
    expect([...server.objects().keys()]).toEqual([KEY]);
    expect(new Set(server.requests().map(({ signed }) => signed))).toEqual(new Set(["HEADER"]));
    expect(new Set(server.requests().map(({ operation }) => operation)).size).toBe(11);
  });

  it("a presigned address gives the bytes, named and typed as it was signed", async () => {
    await using server = await startS3();
    using client = clientOf(server, { addressing });
    await server.plant(KEY, "a,b\n");
    const answer = await get(await signDownload(client, server));
    expect(answer).toMatchObject({ status: 200, body: "a,b\n" });
    expect(answer.headers["content-type"]).toBe("text/csv; charset=utf-8");
    expect(answer.headers["content-disposition"]).toBe(`attachment; filename="a b.csv"`);
    expect(server.requests().at(-1)).toMatchObject({ signed: "QUERY", operation: "GetObject", key: KEY });
  });
});

it.each([
  ["another secret", { secretAccessKey: "another" }, 403, "SignatureDoesNotMatch"],
  ["another key id", { accessKeyId: "ANOTHER" }, 403, "InvalidAccessKeyId"],
  ["another region", { region: "eu-west-1" }, 400, "AuthorizationHeaderMalformed"],
  [
    "metadata changed on the way",
    { tamper: (r) => (r.headers["x-amz-meta-sha256"] = "00") },
    403,
    "SignatureDoesNotMatch",
  ],
  ["metadata added on the way", { tamper: (r) => (r.headers["x-amz-meta-more"] = "00") }, 403, "AccessDenied"],
  ["metadata lost on the way", { tamper: (r) => delete r.headers["x-amz-meta-sha256"] }, 403, "SignatureDoesNotMatch"],
  ["a parameter added", { tamper: (r) => (r.query["x-more"] = "1") }, 403, "SignatureDoesNotMatch"],
  ["a parameter changed", { tamper: (r) => (r.query["x-id"] = "GetObject") }, 403, "SignatureDoesNotMatch"],
  ["a parameter removed", { tamper: (r) => delete r.query["x-id"] }, 403, "SignatureDoesNotMatch"],
  ["another key of the bucket", { tamper: (r) => (r.path += "x") }, 403, "SignatureDoesNotMatch"],
  ["another body", { tamper: (r) => (r.body = "hello w0rld") }, 400, "XAmzContentSHA256Mismatch"],
  ["the signature taken away", { tamper: (r) => delete r.headers["authorization"] }, 403, "AccessDenied"],
] as const satisfies readonly (readonly [string, Parameters<typeof clientOf>[1], number, string])[])(
  "a put is refused and stores nothing: %s",
  async (_what, changes, status, code) => {
    await using server = await startS3();
    using client = clientOf(server, changes);
    const put = new PutObjectCommand({
      Bucket: server.bucket,
      Key: KEY,
      Body: "hello world",
      Metadata: { sha256: "abc" },
    });
    await expect(client.send(put)).rejects.toMatchObject({ Code: code, $metadata: { httpStatusCode: status } });
    expect(server.objects().size).toBe(0);
    const [seen] = await server.waitFor(() => true);
    expect(seen).toMatchObject({ status, code });
  },
);

it("a clock that is off is told so", async () => {
  await using server = await startS3({ now: () => Date.now() + 16 * 60_000 });
  using client = clientOf(server);
  const list = new ListObjectsV2Command({ Bucket: server.bucket });
  await expect(client.send(list)).rejects.toMatchObject({ Code: "RequestTimeTooSkewed" });
});

it.each([
  [
    "the audit id changed",
    (url: string) => url.replace(/000000000001(?=&|$)/, "000000000002"),
    "SignatureDoesNotMatch",
  ],
  ["the audit id removed", (url: string) => url.replace(/&x-keble-audit-id=[^&]*/, ""), "SignatureDoesNotMatch"],
  ["a parameter added", (url: string) => `${url}&x-more=1`, "SignatureDoesNotMatch"],
  ["the file name changed", (url: string) => url.replace("a%20b.csv", "evil.exe"), "SignatureDoesNotMatch"],
  ["a longer life", (url: string) => url.replace("Expires=300", "Expires=3000"), "SignatureDoesNotMatch"],
  ["another object", (url: string) => url.replace("some%20prefix", "other"), "SignatureDoesNotMatch"],
  ["the signature changed", (url: string) => url.replace(/Signature=./, "Signature=g"), "SignatureDoesNotMatch"],
  [
    "the signature removed",
    (url: string) => url.replace(/X-Amz-Signature=[^&]*&?/, ""),
    "AuthorizationQueryParametersError",
  ],
])("a presigned address is refused: %s", async (_what, tamper, code) => {
  await using server = await startS3();
  using client = clientOf(server);
  await server.plant(KEY, "a,b\n");
  const url = await signDownload(client, server);
  const tampered = tamper(url);
  expect(tampered).not.toBe(url);
  const answer = await get(tampered);
  expect(answer.status).toBeGreaterThanOrEqual(400);
  expect(answer.body).toContain(`<Code>${code}</Code>`);
  expect(await get(url)).toMatchObject({ status: 200 });
});

it("a presigned address ends with its life, and is good for its method only", async () => {
  let aheadMs = 0;
  await using server = await startS3({ now: () => Date.now() + aheadMs });
  using client = clientOf(server);
  await server.plant(KEY, "a,b\n");
  const url = await signDownload(client, server, 60);
  expect((await get(url, "HEAD")).status).toBe(403);
  expect((await get(url, "DELETE")).body).toContain("<Code>SignatureDoesNotMatch</Code>");
  expect((await get(url, "GET", { range: "bytes=0-0" })).body).toBe("a");
  aheadMs = 59_000;
  expect((await get(url)).status).toBe(200);
  aheadMs = 61_500;
  const late = await get(url);
  expect(late).toMatchObject({ status: 403 });
  expect(late.body).toContain("<Code>AccessDenied</Code><Message>Request has expired</Message>");
});
