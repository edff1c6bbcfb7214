import { GetObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { getSignedUrl } from "@aws-sdk/s3-request-presigner";
import { startS3 } from "@keble-scraper/testkit";
import { expect, it } from "vitest";
import { clientOf, type SignedHttpRequest } from "./s3-clients.ts";

const AUDIT_ID = "01890000-0000-7000-8000-000000000001";

/** One put, one presigned GET with an audit id, and one GET of nothing that nobody signed, at a fixed moment. */
async function threeRequests() {
  const nowMs = Date.now();
  const server = await startS3({ now: () => nowMs });
  using client = clientOf(server);
  const place = { Bucket: server.bucket, Key: "p/a b.txt" };
  await client.send(new PutObjectCommand({ ...place, Body: "hello world" }));
  const command = new GetObjectCommand(place);
  command.middlewareStack.add(
    (next) => (args) => {
      const request = args.request as SignedHttpRequest;
      request.query = { ...request.query, "x-keble-audit-id": AUDIT_ID };
      return next(args);
    },
    { step: "build" },
  );
  const url = await getSignedUrl(client, command);
  await (await fetch(url, { headers: { referer: 'https://a.example/"x"', "user-agent": "tool/1.0 (x)" } })).text();
  await (await fetch(`${server.url}/${server.bucket}/none`)).text();
  await server.waitFor(() => true, 3);
  return { server, at: new Date(nowMs), target: url.slice(server.url.length) };
}

/** A line's fields: quoted and bracketed ones are one field. */
const fieldsOf = (line: string) => line.match(/"[^"]*"|\[[^\]]*\]|\S+/g) ?? [];

it("AWS' server access log: 26 fields, the real request line, how it was signed", async () => {
  const { server, at, target } = await threeRequests();
  await using _stopped = server;
  const [put, get, stranger] = server.accessLog("S3").map(fieldsOf);
  expect(put).toHaveLength(26);
  expect(get).toHaveLength(26);
  expect(get?.[2]).toMatch(/^\[\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d \+0000\]$/);
  expect(get?.[2]).toContain(at.toISOString().slice(11, 19));
  expect(get?.slice(6, 13)).toEqual([
    "REST.GET.OBJECT",
    "p/a%20b.txt",
    `"GET ${target} HTTP/1.1"`,
    "200",
    "-",
    "11",
    "11",
  ]);
  expect(get?.slice(15, 17)).toEqual(['"https://a.example/%22x%22"', '"tool/1.0 (x)"']);
  expect([get?.[1], get?.[19], get?.[21], get?.[22]]).toEqual([
    server.bucket,
    "SigV4",
    "QueryString",
    `127.0.0.1:${server.port}`,
  ]);
  expect([put?.[6], put?.[9], put?.[21]]).toEqual(["REST.PUT.OBJECT", "200", "AuthHeader"]);
  expect([stranger?.[4], stranger?.[9], stranger?.[10], stranger?.[21]]).toEqual(["-", "403", "AccessDenied", "-"]);
  expect(get?.[8]).toContain(`x-keble-audit-id=${AUDIT_ID}`);
});

it("OSS' real-time log: one JSON object of texts a line, the real address", async () => {
  const { server, target } = await threeRequests();
  await using _stopped = server;
  const [put, get, stranger] = server.accessLog("OSS").map((line) => JSON.parse(line) as Record<string, string>);
  expect(get).toMatchObject({
    bucket: server.bucket,
    object: "p%2Fa%20b.txt",
    object_size: "11",
    operation: "GetObject",
    request_uri: target,
    http_method: "GET",
    http_status: "200",
    error_code: "-",
    sign_type: "UriSign",
    access_id: server.accessKeyId,
    response_body_length: "11",
    user_agent: "tool/1.0 (x)",
  });
  expect(get?.["time"]).toMatch(/^\d\d\/[A-Z][a-z]{2}\/\d{4}:\d\d:\d\d:\d\d$/);
  expect(put).toMatchObject({ operation: "PutObject", sign_type: "NormalSign", delta_data_size: "11" });
  expect(stranger).toMatchObject({
    sign_type: "NotSign",
    http_status: "403",
    error_code: "AccessDenied",
    access_id: "-",
  });
});

it("MinIO's audit log: the path without its query, the query as a map", async () => {
  const { server, at } = await threeRequests();
  await using _stopped = server;
  const [put, get, stranger] = server.accessLog("MINIO").map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(get).toMatchObject({
    version: "1",
    time: at.toISOString(),
    trigger: "incoming",
    api: {
      name: "GetObject",
      bucket: server.bucket,
      object: "p/a b.txt",
      status: "OK",
      statusCode: 200,
      rx: 0,
      tx: 11,
    },
    remotehost: "127.0.0.1",
    requestPath: `/${server.bucket}/p/a%20b.txt`,
    accessKey: server.accessKeyId,
  });
  expect(get?.["requestQuery"]).toMatchObject({ "x-keble-audit-id": AUDIT_ID, "X-Amz-Expires": "900" });
  expect(put).toMatchObject({ api: { name: "PutObject", rx: 11 } });
  expect(put?.["requestHeader"]).toHaveProperty("Authorization");
  expect(stranger).toMatchObject({ api: { statusCode: 403, status: "AccessDenied" } });
  expect(stranger).not.toHaveProperty("accessKey");
});
