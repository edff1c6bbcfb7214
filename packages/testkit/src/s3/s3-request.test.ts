import { expect, it } from "vitest";
import { parseS3Request, type S3Request } from "./s3-request.ts";

function parse(host: string, url: string, ...rawHeaders: string[]): S3Request | null {
  return parseS3Request({ method: "GET", url, rawHeaders: ["Host", host, ...rawHeaders] }, "mine");
}

it.each([
  ["127.0.0.1:9000", "/mine/a/b", "PATH", "mine", "a/b"],
  ["127.0.0.1:9000", "/mine", "PATH", "mine", ""],
  ["127.0.0.1:9000", "/mine/", "PATH", "mine", ""],
  ["127.0.0.1:9000", "/", "PATH", "", ""],
  ["localhost:9000", "/other/a", "PATH", "other", "a"],
  ["mine.localhost:9000", "/a/b", "VIRTUAL_HOST", "mine", "a/b"],
  ["mine.store.example", "/a//b/../c", "VIRTUAL_HOST", "mine", "a//b/../c"],
  ["other.localhost", "/a", "VIRTUAL_HOST", "other", "a"],
  ["mine.localhost", "/", "VIRTUAL_HOST", "mine", ""],
] as const)("the bucket and the key of %s%s are found", (host, url, addressing, bucket, key) => {
  expect(parse(host, url)).toMatchObject({ addressing, bucket, key });
});

it("keys and parameters are decoded once; a plus in the query is a blank, in the path it is itself", () => {
  const request = parse("h", "/mine/a%2Bb+c%2520?x=1+2%2B3&y&=z&x=%C3%A4");
  expect(request?.key).toBe("a+b+c%20");
  expect(request?.query).toEqual([
    ["x", "1 2+3"],
    ["y", ""],
    ["", "z"],
    ["x", "ä"],
  ]);
});

it("header lines of one name are joined", () => {
  expect(parse("h", "/", "X-Amz-Meta-A", "1", "x-amz-meta-a", "2")?.headers.get("x-amz-meta-a")).toBe("1,2");
});

it.each(["/%E4", "/mine/%", "/mine/a?x=%zz"])("%s can't be decoded", (url) => {
  expect(parse("h", url)).toBeNull();
});
