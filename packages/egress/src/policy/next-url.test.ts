import fc from "fast-check";
import { describe, expect, test } from "vitest";
import vectors from "../../fixtures/location-vectors.json" with { type: "json" };
import { parseAllowedTargets } from "./allowed-targets.ts";
import { isRedirectStatus, nextUrl } from "./next-url.ts";
import { vetUrl, type VettedUrl } from "./vet-url.ts";

function vetted(url: string): VettedUrl {
  const result = vetUrl(url);
  if (!result.ok) throw new Error(result.reason);
  return result.url;
}

const BASE = vetted("https://example.com/a/b?x=1");
const OUTCOMES = { FOLLOW: "follow", FINAL: "final", REJECTED: "redirect_rejected", INVALID: "redirect_invalid" };

describe("redirect targets", () => {
  test.each(vectors)("W6 $id $expect $note", ({ base, location_latin1, expect: expected, resolved }) => {
    const next = nextUrl(vetted(base), [location_latin1]);
    expect(OUTCOMES[next.kind]).toBe(expected);
    expect(next.kind === "FOLLOW" ? next.url.href : null).toBe(resolved);
  });

  test("W6 a response without Location is final, and two equal ones are one", () => {
    expect(nextUrl(BASE, [])).toEqual({ kind: "FINAL" });
    expect(nextUrl(BASE, ["/ok", "/ok"])).toMatchObject({ kind: "FOLLOW" });
    expect(nextUrl(BASE, ["/ok", "/other"])).toEqual({ kind: "INVALID", reason: "conflict" });
  });

  test.each([
    [`/${"a".repeat(8192)}`, "INVALID", "too_long"],
    ["/\u4f60", "INVALID", "not_bytes"],
    ["http://\xe9xample.com/", "REJECTED", "host_percent"],
    ["/\xe2\x80\xae", "REJECTED", "bidi_control"],
    ["//example.org:25/", "REJECTED", "port"],
    ["?q=\\", "FOLLOW", undefined],
    ["#top", "FOLLOW", undefined],
    ["//10.0.0.1/?x=\\", "REJECTED", "address"],
  ])("%j is %s %s", (location, kind, reason) => {
    expect(nextUrl(BASE, [location])).toMatchObject(reason === undefined ? { kind } : { kind, reason });
  });

  test("bytes that are no UTF-8 are percent-encoded one by one beside those that are", () => {
    expect(nextUrl(BASE, ["/\xc3\xa9\xe9\xc0\xaf\xed\xa0\x80\xf0\x9f\x98\x80"])).toMatchObject({
      kind: "FOLLOW",
      url: { target: "/%C3%A9%E9%C0%AF%ED%A0%80%F0%9F%98%80" },
    });
  });

  test("W7 the list of allowed targets holds for redirects too", () => {
    const parsed = parseAllowedTargets(["127.0.0.1:8080"]);
    if (!parsed.ok) throw new Error("bad list");
    const options = { allowedTargets: parsed.targets };
    expect(nextUrl(BASE, ["http://127.0.0.1:8080/x"], options)).toMatchObject({ kind: "FOLLOW" });
    expect(nextUrl(BASE, ["http://127.0.0.1:8081/x"], options)).toMatchObject({ kind: "REJECTED", reason: "address" });
  });

  test("only the five redirect statuses are followed", () => {
    const followed = Array.from({ length: 900 }, (_, index) => index + 100).filter(isRedirectStatus);
    expect(followed).toEqual([301, 302, 303, 307, 308]);
  });

  test("W6 hostile bytes never throw, and a followed URL passes the policy by itself", () => {
    expect.hasAssertions();
    const byte = fc.integer({ min: 0x20, max: 0xff }).map((code) => String.fromCharCode(code));
    const piece = fc.oneof(
      fc.constantFrom("//", "http:", "127.0.0.1", "..", "@", "?", "#", "%2f", "example.org"),
      byte,
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
        const next = nextUrl(BASE, [pieces.join("")]);
        fc.pre(next.kind === "FOLLOW");
        expect(vetUrl(next.url.href)).toEqual({ ok: true, url: next.url });
      }),
      { numRuns: 2000 },
    );
  });
});
