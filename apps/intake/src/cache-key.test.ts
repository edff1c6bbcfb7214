import { SubmitJob, type SubmitJobInput } from "@keble-scraper/contract";
import { expect, test } from "vitest";
import { cacheKey } from "./cache-key.ts";

const URL_TEXT = "https://shop.example.com/p/1";

function keyOf(more: Partial<SubmitJobInput> = {}, url = URL_TEXT, capture: string | null = null): string | null {
  return cacheKey(SubmitJob.parse({ target: { url }, freshness: "ONE_HOUR", ...more }), { url, capture });
}

test("A7 each part that may change an answer changes the key", () => {
  const target = { url: URL_TEXT };
  const keys = [
    keyOf(),
    keyOf({}, `${URL_TEXT}?q=1`),
    keyOf({ target: { ...target, method: "HEAD" } }),
    keyOf({ target: { ...target, headers: { "accept-language": "en" } } }),
    keyOf({ target: { ...target, headers: { "accept-language": "de" } } }),
    keyOf({ transport: "RENDER" }),
    keyOf({ transport: "RENDER" }, URL_TEXT, "DOM"),
    keyOf({ transport: "RENDER" }, URL_TEXT, "PDF"),
    keyOf({ accept: "ANY_RESPONSE" }),
    keyOf({ robots: "IGNORE" }),
    keyOf({ routes: ["DIRECT", "DATACENTER"] }),
    keyOf({ routes: ["DATACENTER", "DIRECT"] }),
    keyOf({ egress: { country: "us" } }),
    keyOf({ egress: { stickyKey: "us" } }),
  ];
  expect(new Set(keys).size).toBe(keys.length);
  expect(keys.every((key) => /^[0-9a-f]{64}$/.test(key ?? ""))).toBe(true);
});

test("A7 what only says which stored answer will do is not in the key, nor is how the body was written", () => {
  const same = [
    keyOf({ freshness: "SEVEN_DAYS" }),
    keyOf({ limits: { maxBodyBytes: 1, attemptBudget: 9, deadline: "ONE_DAY" } }),
    keyOf({ contentTypes: ["text/html"] }),
    keyOf({ labels: { batch: "1" }, callback: { endpoint: "orders" } }),
    keyOf({ transport: "HTTP", routes: ["DIRECT"], robots: "RESPECT", accept: "SUCCESS_ONLY" }),
  ];
  expect(new Set([...same, keyOf()]).size).toBe(1);
  const cased = { "Accept-Language": "en", accept: "*/*" };
  const sorted = { accept: "*/*", "accept-language": "en" };
  expect(keyOf({ target: { url: URL_TEXT, headers: cased } })).toBe(
    keyOf({ target: { url: URL_TEXT, headers: sorted } }),
  );
});

test("A7 a NO_CACHE job and a caller's own condition have no key", () => {
  expect(keyOf({ freshness: "NO_CACHE" })).toBeNull();
  for (const headers of [{ "If-None-Match": '"1"' }, { "if-modified-since": "Mon, 01 Jan 2024 00:00:00 GMT" }]) {
    expect(keyOf({ target: { url: URL_TEXT, headers } })).toBeNull();
  }
});
