import { describe, expect, it } from "vitest";
import { parseLocalLine } from "./parse-local-line.ts";
import { parseMinioLine } from "./parse-minio-line.ts";
import { createOssParser } from "./parse-oss-line.ts";
import { parseS3Line } from "./parse-s3-line.ts";

const ID = "01936b5e-0000-7000-8000-000000000001";
const KEY = `kept/${"ab".repeat(32)}/0123456789abcdef`;
const AT = new Date("2026-11-30T17:00:38Z");

/** A line in the order of AWS' page, with what a test puts in its place. */
function s3Line(fields: Readonly<Record<string, string>> = {}): string {
  const line = {
    owner: "79a59df900b949e55d96a1e698fbacedfd6e09d98eacf8f8d5218e7cd47ef2be",
    bucket: "artifacts-of-shop",
    time: "[30/Nov/2026:17:00:38 +0000]",
    remote: "192.0.2.3",
    requester: "arn:aws:iam::123456789012:user/keble",
    requestId: "3E57427F3EXAMPLE",
    operation: "REST.GET.OBJECT",
    key: KEY,
    uri: `"GET /artifacts-of-shop/${KEY}?X-Amz-Expires=300&x-keble-audit-id=${ID}&x-id=GetObject HTTP/1.1"`,
    status: "200",
    error: "-",
    bytes: "2662992",
    size: "3462992",
    total: "70",
    turnAround: "10",
    referer: '"http://www.example.com/webservices"',
    agent: '"curl/7.15.1"',
    version: "-",
    host: "s9lzHYrFp76ZVxRcpX9+5cjAnEH2ROuNkd2BHfIa6UkFVdtjf5mKR3/eTPFvsiP/XV/VLi31234=",
    signature: "SigV4",
    cipher: "ECDHE-RSA-AES128-GCM-SHA256",
    auth: "QueryString",
    hostHeader: "s3.us-west-1.amazonaws.com",
    tls: "TLSv1.2",
    ...fields,
  };
  return Object.values(line).join(" ");
}

const READ = {
  kind: "READ",
  read: {
    requestId: "3E57427F3EXAMPLE",
    at: AT,
    bucket: "artifacts-of-shop",
    key: KEY,
    auditId: ID,
    signedBy: "LINK",
    accessKeyId: null,
  },
};
const read = (changed: Readonly<Record<string, unknown>>) => ({ kind: "READ", read: { ...READ.read, ...changed } });

describe("a line of an S3 access log", () => {
  it("tells who read what by which link", () => {
    expect(parseS3Line(s3Line())).toEqual(READ);
    expect(parseS3Line(s3Line({ tls: "TLSv1.2 - Yes us-east-1 and-what-comes-later" }))).toEqual(READ);
    expect(parseS3Line(s3Line({ time: "[30/Nov/2026:18:00:38 +0100]", status: "206" }))).toEqual(READ);
  });

  it("is the same for a request with the bucket in its host, and with an encoded key", () => {
    const uri = `"GET /${KEY}?x-keble-audit-id=${ID.replaceAll("-", "%2D")} HTTP/1.1"`;
    expect(parseS3Line(s3Line({ uri, key: KEY.replaceAll("/", "%2F") }))).toEqual(READ);
  });

  it("tells how it was signed, whatever a caller wrote into its names", () => {
    expect(parseS3Line(s3Line({ auth: "AuthHeader" }))).toEqual(read({ signedBy: "KEY" }));
    expect(parseS3Line(s3Line({ auth: "-" }))).toEqual(read({ signedBy: "NOBODY" }));
    const agent = '"a "quoted" agent - - SigV4 - QueryString - " - - SigV4 - QueryString"';
    expect(parseS3Line(s3Line({ agent, auth: "AuthHeader" }))).toEqual(read({ signedBy: "KEY" }));
    const old = s3Line().split(" s9lz")[0] ?? "";
    expect(parseS3Line(old)).toEqual(read({ signedBy: "UNKNOWN" }));
  });

  it("tells of an audit id that is missing, doubled or no id", () => {
    expect(parseS3Line(s3Line({ uri: `"GET /${KEY} HTTP/1.1"` }))).toEqual(read({ auditId: null }));
    expect(parseS3Line(s3Line({ uri: "-" }))).toEqual(read({ auditId: null }));
    const twice = `"GET /${KEY}?x-keble-audit-id=a&x-keble-audit-id=b HTTP/1.1"`;
    expect(parseS3Line(s3Line({ uri: twice }))).toEqual(read({ auditId: "a,b" }));
    expect(parseS3Line(s3Line({ uri: `"GET /${KEY}?x-keble-audit-id= HTTP/1.1"` }))).toEqual(read({ auditId: "" }));
  });

  it("is no read when no bytes went out, or nothing was got", () => {
    for (const changed of [
      { status: "304" },
      { status: "403" },
      { status: "-" },
      { operation: "REST.HEAD.OBJECT" },
      { operation: "REST.PUT.OBJECT" },
      { operation: "REST.GET.BUCKET", key: "-" },
      { operation: "REST.GET.OBJECTTAGGING" },
    ]) {
      expect(parseS3Line(s3Line(changed))).toEqual({ kind: "OTHER", at: AT });
    }
    expect(parseS3Line(s3Line({ operation: "REST.COPY.OBJECT_GET" }))).toEqual(READ);
    expect(parseS3Line(s3Line({ operation: "WEBSITE.GET.OBJECT" }))).toEqual(READ);
  });

  it.each([
    ["nothing", " "],
    ["half of it", s3Line().slice(0, 150)],
    ["a time of no month", s3Line({ time: "[30/Now/2026:17:00:38 +0000]" })],
    ["no key", s3Line({ key: "-" })],
    ["a key that is encoded wrongly", s3Line({ key: "%E0%A4%A" })],
    ["another format", '{"a":1}'],
  ])("is malformed: %s", (_what, line) => {
    expect(parseS3Line(line)).toMatchObject({ kind: "MALFORMED" });
  });

  it("is read in the time of its length, whatever is in it", () => {
    const startedAt = performance.now();
    for (const line of ["a ".repeat(30_000), `a b [${" ".repeat(60_000)}`, s3Line({ agent: '"'.repeat(60_000) })]) {
      parseS3Line(line);
    }
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});

describe("a line of an OSS real-time log", () => {
  const entry = {
    __topic__: "oss_access_log",
    time: "30/Nov/2026:17:00:38",
    access_id: "LTAI-of-ours",
    bucket: "artifacts-of-shop",
    object: encodeURIComponent(KEY),
    operation: "GetObject",
    request_uri: `/${KEY}?x-oss-expires=300&x-keble-audit-id=${ID}`,
    http_status: "200",
    request_id: "3E57427F3EXAMPLE",
    sign_type: "UriSign",
  };
  const parse = (changed: Readonly<Record<string, unknown>> = {}, offsetMinutes = 0) =>
    createOssParser(offsetMinutes)(JSON.stringify({ ...entry, ...changed }));
  const ossRead = (changed: Readonly<Record<string, unknown>> = {}) =>
    read({ accessKeyId: "LTAI-of-ours", ...changed });

  it("tells who read what by which link", () => {
    expect(parse()).toEqual(ossRead());
    expect(parse({ request_uri: encodeURIComponent(entry.request_uri) })).toEqual(ossRead());
    expect(parse({ request_uri: `${entry.request_uri} HTTP/1.1` })).toEqual(ossRead());
    expect(parse({ sign_type: "NormalSign" })).toEqual(ossRead({ signedBy: "KEY" }));
    expect(parse({ sign_type: "NotSign", access_id: "-" })).toEqual(read({ signedBy: "NOBODY" }));
    expect(parse({ sign_type: "-" })).toEqual(ossRead({ signedBy: "UNKNOWN" }));
    expect(parse({ request_uri: `/${KEY}` })).toEqual(ossRead({ auditId: null }));
  });

  it("has its time in the zone that was told, or from the log service", () => {
    expect(parse({ time: "01/Dec/2026:01:00:38" }, 480)).toEqual(ossRead());
    expect(parse({ time: "-", __time__: AT.getTime() / 1000 }, 480)).toEqual(ossRead());
    expect(parse({ time: "-", __time__: String(AT.getTime() / 1000) })).toEqual(ossRead());
  });

  it("is no read, or malformed", () => {
    expect(parse({ operation: "PutObject" })).toEqual({ kind: "OTHER", at: AT });
    expect(parse({ http_status: "403" })).toEqual({ kind: "OTHER", at: AT });
    for (const changed of [{ operation: 7 }, { time: "now" }, { object: "-" }, { object: "%" }, { request_id: "-" }]) {
      expect(parse(changed)).toMatchObject({ kind: "MALFORMED" });
    }
    for (const line of ["", "[]", "null", "{", s3Line()]) {
      expect(createOssParser(0)(line)).toMatchObject({ kind: "MALFORMED" });
    }
  });
});

describe("a line of a MinIO audit log", () => {
  const api = { name: "GetObject", bucket: "artifacts-of-shop", object: KEY, status: "OK", statusCode: 200 };
  const entry = {
    version: "1",
    time: "2026-11-30T17:00:38.000000000Z",
    api,
    requestID: "3E57427F3EXAMPLE",
    requestPath: `/artifacts-of-shop/${KEY}`,
    requestQuery: { "X-Amz-Signature": "abc", "x-keble-audit-id": ID },
    requestHeader: { "User-Agent": "curl/7.15.1" },
    accessKey: "ours",
  };
  const parse = (changed: Readonly<Record<string, unknown>> = {}) =>
    parseMinioLine(JSON.stringify({ ...entry, ...changed }));

  it("tells who read what by which link", () => {
    expect(parse()).toEqual(read({ accessKeyId: "ours" }));
    expect(parse({ requestQuery: { "x-amz-signature": "abc", "x-keble-audit-id": ["a", "b"] } })).toEqual(
      read({ accessKeyId: "ours", auditId: "a,b" }),
    );
    const header = { requestQuery: {}, requestHeader: { Authorization: "AWS4-HMAC-SHA256 …" } };
    expect(parse(header)).toEqual(read({ accessKeyId: "ours", auditId: null, signedBy: "KEY" }));
    expect(parse({ requestQuery: null, requestHeader: null, accessKey: undefined })).toEqual(
      read({ auditId: null, signedBy: "NOBODY" }),
    );
  });

  it("is no read, or malformed", () => {
    expect(parse({ api: { ...api, name: "PutObject" } })).toEqual({ kind: "OTHER", at: AT });
    expect(parse({ api: { ...api, statusCode: 404 } })).toEqual({ kind: "OTHER", at: AT });
    for (const changed of [{ api: "x" }, { time: "now" }, { api: { ...api, object: "" } }, { requestID: "" }]) {
      expect(parse(changed)).toMatchObject({ kind: "MALFORMED" });
    }
    expect(parseMinioLine("{}")).toMatchObject({ kind: "MALFORMED" });
  });
});

describe("a line of this product's own log", () => {
  const [, sha256, generation] = KEY.split("/");
  const entry = {
    time: "2026-11-30T17:00:38.000Z",
    msg: "download.served",
    requestId: "r",
    auditId: ID,
    sha256,
    generation,
  };

  it("tells what the download server of a local store sent", () => {
    const local = { requestId: "r@2026-11-30T17:00:38.000Z", bucket: null, key: `${sha256 ?? ""}/${generation ?? ""}` };
    expect(parseLocalLine(JSON.stringify(entry))).toEqual(read(local));
    expect(parseLocalLine(JSON.stringify({ ...entry, msg: "download.cut" }))).toEqual(read(local));
    expect(parseLocalLine(JSON.stringify({ ...entry, msg: "download.gone" }))).toEqual({ kind: "OTHER", at: AT });
    expect(parseLocalLine(JSON.stringify({ ...entry, sha256: undefined }))).toMatchObject({ kind: "MALFORMED" });
    expect(parseLocalLine("started")).toMatchObject({ kind: "MALFORMED" });
  });
});
