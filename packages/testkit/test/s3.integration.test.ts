import { Agent } from "node:http";
import {
  DeleteObjectCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
} from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { lookUpLocally, type S3Server, startS3 } from "@keble-scraper/testkit";
import { expect, it } from "vitest";

function clientOf(
  server: S3Server,
  more: { readonly addressing?: "PATH" | "VIRTUAL_HOST"; readonly secret?: string } = {},
) {
  const path = (more.addressing ?? "PATH") === "PATH";
  return new S3Client({
    endpoint: path ? server.url : server.virtualHostUrl,
    forcePathStyle: path,
    region: server.region,
    credentials: {
      accessKeyId: server.accessKeyId,
      secretAccessKey: more.secret ?? server.secretAccessKey,
    },
    requestChecksumCalculation: "WHEN_REQUIRED",
    responseChecksumValidation: "WHEN_REQUIRED",
    maxAttempts: 1,
    requestHandler: { httpAgent: new Agent({ lookup: lookUpLocally, keepAlive: true }) },
  });
}

it.each(["PATH", "VIRTUAL_HOST"] as const)(
  "the SDK puts, reads, lists and removes, addressing by %s",
  async (addressing) => {
    await using server = await startS3();
    const client = clientOf(server, { addressing });
    const Bucket = server.bucket;
    const Key = "some prefix/ä+b(1)!.bin";
    const put = await client.send(
      new PutObjectCommand({
        Bucket,
        Key,
        Body: "hello world",
        ContentType: "text/plain",
        Metadata: { sha256: "abc" },
      }),
    );
    expect(put.ETag).toBe('"5eb63bbbe01eeed093cb22bb8f5acdc3"');
    const got = await client.send(new GetObjectCommand({ Bucket, Key, Range: "bytes=6-" }));
    expect(await got.Body?.transformToString()).toBe("world");
    const head = await client.send(new HeadObjectCommand({ Bucket, Key }));
    expect(head).toMatchObject({ ContentLength: 11, ContentType: "text/plain", Metadata: { sha256: "abc" } });
    const list = await client.send(new ListObjectsV2Command({ Bucket, Prefix: "some" }));
    expect(list.Contents?.map((item) => item.Key)).toEqual([Key]);
    const url = await getSignedUrl(client, new GetObjectCommand({ Bucket, Key }), { expiresIn: 60 });
    if (addressing === "PATH") expect(await (await fetch(url)).text()).toBe("hello world");
    await client.send(new DeleteObjectCommand({ Bucket, Key }));
    await client.send(new DeleteObjectCommand({ Bucket, Key }));
    await expect(client.send(new GetObjectCommand({ Bucket, Key }))).rejects.toMatchObject({ name: "NoSuchKey" });
    client.destroy();
  },
);
