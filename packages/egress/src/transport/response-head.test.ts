import { describe, expect, it } from "vitest";
import { readResponseHead } from "./response-head.ts";

describe("readResponseHead", () => {
  it("joins repeats, keeps set-cookie a list, lowers names and keeps bytes as latin1", () => {
    const raw = ["X-A", "1", "x-a", "2", "Set-Cookie", "a=1", "SET-COOKIE", "b=2", "X-L", "é"].map((text) =>
      Buffer.from(text, "latin1"),
    );
    expect(readResponseHead(200, raw, "GET").headers).toEqual({
      "x-a": "1, 2",
      "set-cookie": ["a=1", "b=2"],
      "x-l": "é",
    });
  });

  it("takes out what a database refuses", () => {
    expect(readResponseHead(200, ["x", "a\u0000b\u0007c\td\u007f"], "GET").headers).toEqual({ x: "abc\td" });
  });

  it("a header named __proto__ is a header", () => {
    const { headers } = readResponseHead(200, ["__proto__", "x"], "GET");
    expect(Object.getOwnPropertyNames(headers)).toEqual(["__proto__"]);
    expect(Object.getPrototypeOf(headers)).toBe(Object.prototype);
  });

  it.each([
    ["GET", 200, ["content-length", "5"], "LENGTH", 5, true],
    ["GET", 200, ["transfer-encoding", "chunked"], "CHUNKED", null, true],
    ["GET", 200, [], "CLOSE", null, true],
    ["HEAD", 200, ["content-length", "5"], "LENGTH", 5, false],
    ["HEAD", 200, [], "LENGTH", null, false],
    ["GET", 204, [], "LENGTH", null, false],
    ["GET", 304, ["content-length", "5"], "LENGTH", 5, false],
    ["GET", 200, ["content-length", "5x"], "LENGTH", null, true],
  ] as const)("%s %d with %j is framed by %s", (method, status, raw, framing, declaredBytes, mayHaveBody) => {
    expect(readResponseHead(status, raw, method)).toMatchObject({ framing, declaredBytes, mayHaveBody });
  });
});
