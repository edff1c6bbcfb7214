import { describe, expect, it } from "vitest";
import { parseS3Request, type S3Request } from "./s3-request.ts";
import { verifySignature } from "./verify-signature.ts";

/** The key, bucket and moment of the examples that AWS publishes with its description of signature version 4 for S3. */
const KEY = {
  accessKeyId: "AKIAIOSFODNN7EXAMPLE",
  secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  region: "us-east-1",
};
const HOST = "examplebucket.s3.amazonaws.com";
const MOMENT = Date.UTC(2013, 4, 24);
const EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
const WELCOME = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
const SCOPE = "AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request";

type Example = {
  readonly name: string;
  readonly method: string;
  readonly target: string;
  readonly payloadHash: string;
  /** Besides host, x-amz-content-sha256 and x-amz-date. */
  readonly headers: Readonly<Record<string, string>>;
  readonly signature: string;
};

const EXAMPLES: readonly Example[] = [
  {
    name: "GET object with a range",
    method: "GET",
    target: "/test.txt",
    payloadHash: EMPTY,
    headers: { range: "bytes=0-9" },
    signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41",
  },
  {
    name: "PUT object",
    method: "PUT",
    target: "/test$file.text",
    payloadHash: WELCOME,
    headers: { date: "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY" },
    signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd",
  },
  {
    name: "GET bucket lifecycle",
    method: "GET",
    target: "/?lifecycle",
    payloadHash: EMPTY,
    headers: {},
    signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543",
  },
  {
    name: "GET bucket, listing objects",
    method: "GET",
    target: "/?max-keys=2&prefix=J",
    payloadHash: EMPTY,
    headers: {},
    signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7",
  },
];

const PRESIGNED = new URLSearchParams({
  "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
  "X-Amz-Credential": SCOPE,
  "X-Amz-Date": "20130524T000000Z",
  "X-Amz-Expires": "86400",
  "X-Amz-SignedHeaders": "host",
  "X-Amz-Signature": "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404",
});

function parse(method: string, target: string, headers: Readonly<Record<string, string>>): S3Request {
  const request = parseS3Request({ method, url: target, rawHeaders: Object.entries(headers).flat() }, "examplebucket");
  if (request === null) throw new Error("not a request");
  return request;
}

/** An example as it is sent, with changes after it was signed; an empty value takes a header away. */
function requestOf(example: Example, changes: Readonly<Record<string, string>> = {}): S3Request {
  const signed: Record<string, string> = {
    host: HOST,
    ...example.headers,
    "x-amz-content-sha256": example.payloadHash,
    "x-amz-date": "20130524T000000Z",
  };
  const names = Object.keys(signed).toSorted().join(";");
  const authorization = `AWS4-HMAC-SHA256 Credential=${SCOPE},SignedHeaders=${names},Signature=${example.signature}`;
  const sent = Object.entries({ ...signed, authorization, ...changes }).filter(([, value]) => value !== "");
  return parse(example.method, example.target, Object.fromEntries(sent));
}

function presigned(changes: Readonly<Record<string, string>> = {}): S3Request {
  const query = new URLSearchParams(PRESIGNED);
  for (const [name, value] of Object.entries(changes)) {
    if (value === "") query.delete(name);
    else query.set(name, value);
  }
  return parse("GET", `/test.txt?${query.toString()}`, { host: HOST });
}

/** "" for a request that was let through. */
function codeOf(request: S3Request, nowMs = MOMENT, key = KEY): string {
  const result = verifySignature(request, key, nowMs);
  return result.ok ? "" : result.refusal.code;
}

describe("signatures in the header", () => {
  it.each(EXAMPLES)("AWS' own example is accepted: $name", (example) => {
    expect(codeOf(requestOf(example))).toBe("");
  });

  it("a path is the same request however it was percent-encoded", () => {
    const [, put] = EXAMPLES;
    expect(codeOf(requestOf({ ...put!, target: "/test%24file.text" }))).toBe("");
    expect(codeOf(requestOf({ ...put!, target: "/test%2524file.text" }))).toBe("SignatureDoesNotMatch");
  });

  const [get, put, , list] = EXAMPLES;
  it.each([
    ["another secret", requestOf(get!), { ...KEY, secretAccessKey: "another" }, "SignatureDoesNotMatch"],
    ["another key id", requestOf(get!), { ...KEY, accessKeyId: "AKIAANOTHER" }, "InvalidAccessKeyId"],
    ["another region", requestOf(get!), { ...KEY, region: "eu-west-1" }, "AuthorizationHeaderMalformed"],
    ["another method", requestOf({ ...get!, method: "HEAD" }), KEY, "SignatureDoesNotMatch"],
    ["another path", requestOf({ ...get!, target: "/test.txT" }), KEY, "SignatureDoesNotMatch"],
    ["an added parameter", requestOf({ ...get!, target: "/test.txt?x-extra=1" }), KEY, "SignatureDoesNotMatch"],
    ["a changed parameter", requestOf({ ...list!, target: "/?max-keys=3&prefix=J" }), KEY, "SignatureDoesNotMatch"],
    ["a removed parameter", requestOf({ ...list!, target: "/?max-keys=2" }), KEY, "SignatureDoesNotMatch"],
    ["a changed signed header", requestOf(get!, { range: "bytes=0-10" }), KEY, "SignatureDoesNotMatch"],
    ["a removed signed header", requestOf(put!, { "x-amz-storage-class": "" }), KEY, "SignatureDoesNotMatch"],
    ["an added x-amz- header", requestOf(get!, { "x-amz-acl": "private" }), KEY, "AccessDenied"],
    ["another payload hash", requestOf(get!, { "x-amz-content-sha256": WELCOME }), KEY, "SignatureDoesNotMatch"],
    ["no payload hash", requestOf(get!, { "x-amz-content-sha256": "" }), KEY, "InvalidRequest"],
    ["no word for a payload", requestOf(get!, { "x-amz-content-sha256": "none" }), KEY, "InvalidArgument"],
    ["another time", requestOf(get!, { "x-amz-date": "20130524T000001Z" }), KEY, "SignatureDoesNotMatch"],
    ["another day", requestOf(get!, { "x-amz-date": "20130523T235959Z" }), KEY, "AuthorizationHeaderMalformed"],
    ["no time", requestOf(get!, { "x-amz-date": "" }), KEY, "AccessDenied"],
    ["no signature", requestOf(get!, { authorization: "" }), KEY, "AccessDenied"],
    ["half a signature", requestOf(get!, { authorization: "AWS4-HMAC-SHA256 x" }), KEY, "AuthorizationHeaderMalformed"],
    ["an older mechanism", requestOf(get!, { authorization: "AWS key:signature" }), KEY, "InvalidRequest"],
  ])("refused: %s", (_what, request, key, code) => {
    expect(codeOf(request, MOMENT, key)).toBe(code);
  });

  it("a clock may be off by fifteen minutes, not by more", () => {
    const skew = 15 * 60_000;
    expect(codeOf(requestOf(get!), MOMENT + skew)).toBe("");
    expect(codeOf(requestOf(get!), MOMENT - skew)).toBe("");
    expect(codeOf(requestOf(get!), MOMENT + skew + 1)).toBe("RequestTimeTooSkewed");
    expect(codeOf(requestOf(get!), MOMENT - skew - 1)).toBe("RequestTimeTooSkewed");
  });
});

describe("presigned addresses", () => {
  it("AWS' own example is accepted until its last second and refused after it", () => {
    expect(codeOf(presigned())).toBe("");
    expect(codeOf(presigned(), MOMENT + 86_400_000)).toBe("");
    const late = verifySignature(presigned(), KEY, MOMENT + 86_400_001);
    expect(late).toMatchObject({
      ok: false,
      refusal: { status: 403, code: "AccessDenied", message: "Request has expired" },
    });
    expect(codeOf(presigned(), MOMENT - 16 * 60_000)).toBe("AccessDenied");
  });

  it.each([
    ["another secret", presigned(), { ...KEY, secretAccessKey: "another" }, "SignatureDoesNotMatch"],
    ["another key id", presigned(), { ...KEY, accessKeyId: "AKIAANOTHER" }, "InvalidAccessKeyId"],
    ["an added parameter", presigned({ "x-keble-audit-id": "1" }), KEY, "SignatureDoesNotMatch"],
    ["a longer life", presigned({ "X-Amz-Expires": "86401" }), KEY, "SignatureDoesNotMatch"],
    ["a week's life, changed", presigned({ "X-Amz-Expires": "604800" }), KEY, "SignatureDoesNotMatch"],
    ["more than a week", presigned({ "X-Amz-Expires": "604801" }), KEY, "AuthorizationQueryParametersError"],
    ["no number of seconds", presigned({ "X-Amz-Expires": "1e3" }), KEY, "AuthorizationQueryParametersError"],
    ["no life", presigned({ "X-Amz-Expires": "" }), KEY, "AuthorizationQueryParametersError"],
    ["no signature", presigned({ "X-Amz-Signature": "" }), KEY, "AuthorizationQueryParametersError"],
    ["no time", presigned({ "X-Amz-Date": "" }), KEY, "AuthorizationQueryParametersError"],
    ["no credential", presigned({ "X-Amz-Credential": "" }), KEY, "AuthorizationQueryParametersError"],
    ["no signed headers", presigned({ "X-Amz-SignedHeaders": "" }), KEY, "AuthorizationQueryParametersError"],
    ["another algorithm", presigned({ "X-Amz-Algorithm": "AWS3" }), KEY, "AuthorizationQueryParametersError"],
    ["the host not signed", presigned({ "X-Amz-SignedHeaders": "range" }), KEY, "AccessDenied"],
  ])("refused: %s", (_what, request, key, code) => {
    expect(codeOf(request, MOMENT, key)).toBe(code);
  });

  it("a parameter that is there twice does not hide behind the one that was signed", () => {
    const target = `/test.txt?${PRESIGNED.toString()}&X-Amz-Expires=604800`;
    expect(codeOf(parse("GET", target, { host: HOST }))).toBe("SignatureDoesNotMatch");
  });

  it("two mechanisms at once are refused", () => {
    const target = `/test.txt?${PRESIGNED.toString()}`;
    const headers = { host: HOST, authorization: `AWS4-HMAC-SHA256 Credential=${SCOPE}` };
    expect(codeOf(parse("GET", target, headers))).toBe("InvalidArgument");
  });
});
