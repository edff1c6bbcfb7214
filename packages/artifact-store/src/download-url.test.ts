import { expect, test } from "vitest";
import { deriveDownloadKey, type DownloadClaims, signDownloadUrl, verifyDownloadUrl } from "./download-url.ts";

const KEY = deriveDownloadKey("a secret of the deployment");
const CLAIMS: DownloadClaims = {
  path: `/${"ab".repeat(32)}/0123456789abcdef`,
  auditId: "018f3c2a-7d11-7abc-8def-0123456789ab",
  expiresAtMs: 1_800_000_000_123,
  contentType: "text/plain; charset=utf-8",
  disposition: `attachment; filename="a b & c=d.txt"; filename*=UTF-8''%e2%82%ac.txt`,
};
const BEFORE = CLAIMS.expiresAtMs - 1;
const URL_ = new URL(signDownloadUrl("http://127.0.0.1:9000", KEY, CLAIMS));
const TARGET = URL_.pathname + URL_.search;
const NAMES = [
  "x-keble-audit-id",
  "x-keble-expires",
  "x-keble-content-type",
  "x-keble-disposition",
  "x-keble-signature",
];

test("A6 a link carries its audit id, and reads back to exactly what was signed", () => {
  expect(URL_.searchParams.get("x-keble-audit-id")).toBe(CLAIMS.auditId);
  expect(verifyDownloadUrl(KEY, TARGET, BEFORE)).toEqual({ ok: true, claims: CLAIMS });
});

test("the path of the base URL is part of the signature", () => {
  const url = new URL(signDownloadUrl("http://localhost:9000/files/", KEY, CLAIMS));
  expect(url.pathname).toBe(`/files${CLAIMS.path}`);
  expect(verifyDownloadUrl(KEY, url.pathname + url.search, BEFORE).ok).toBe(true);
  expect(verifyDownloadUrl(KEY, CLAIMS.path + url.search, BEFORE)).toEqual({ ok: false, reason: "BAD_SIGNATURE" });
});

test.each(NAMES)("A6 a link whose %s is changed, removed, doubled or emptied is refused", (name) => {
  const parts = TARGET.split("?")[1]!.split("&");
  const index = parts.findIndex((part) => part.startsWith(`${name}=`));
  const part = parts[index]!;
  const last = part.at(-1) === "0" ? "1" : "0";
  const variants: Record<string, string[]> = {
    changed: parts.with(index, part.slice(0, -1) + last),
    removed: parts.toSpliced(index, 1),
    "doubled behind": [...parts, part],
    "doubled before": [part, ...parts],
    "another one behind": [...parts, `${name}=x`],
    "another one before": [`${name}=x`, ...parts],
    emptied: parts.with(index, `${name}=`),
    "in other case": parts.with(index, part.replace(name, name.toUpperCase())),
    longer: parts.with(index, `${part}0`),
    shorter: parts.with(index, part.slice(0, -1)),
  };
  const accepted = Object.entries(variants)
    .filter(([, query]) => verifyDownloadUrl(KEY, `${CLAIMS.path}?${query.join("&")}`, BEFORE).ok)
    .map(([what]) => what);
  expect(accepted).toEqual([]);
});

test.each([
  ["another path", TARGET.replace("/ab", "/ac")],
  ["another spelling of the path", TARGET.replace("/ab", "/%61b")],
  ["a step in the path", TARGET.replace("/ab", "/./ab")],
  ["another order", `${CLAIMS.path}?${TARGET.split("?")[1]!.split("&").toReversed().join("&")}`],
  ["one parameter more", `${TARGET}&x=1`],
  ["another spelling of a value", TARGET.replace("%20", "+")],
  ["a fragment", `${TARGET}#x`],
  ["a second question mark", TARGET.replace("?", "??")],
  ["no query", CLAIMS.path],
  ["nothing", ""],
  ["a very long target", `${TARGET}${"&x=1".repeat(2000)}`],
  ["an expiry with a sign", TARGET.replace("expires=", "expires=%2B")],
])("A6 a link with %s is refused", (_, target) => {
  expect(verifyDownloadUrl(KEY, target, BEFORE).ok).toBe(false);
});

test("a link is refused from the millisecond of its expiry on, and only then called expired", () => {
  expect(verifyDownloadUrl(KEY, TARGET, BEFORE + 1)).toEqual({ ok: false, reason: "EXPIRED" });
  const forged = TARGET.replace("1800000000123", "1700000000123");
  expect(verifyDownloadUrl(KEY, forged, BEFORE)).toEqual({ ok: false, reason: "BAD_SIGNATURE" });
});

test("another deployment's secret signs nothing for us", () => {
  expect(verifyDownloadUrl(deriveDownloadKey("another"), TARGET, BEFORE).ok).toBe(false);
});
