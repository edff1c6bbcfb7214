import { expect, test } from "vitest";
import { parseAllowedTargets } from "./allowed-targets.ts";
import { vetAddresses } from "./vet-addresses.ts";
import { type CallbackPolicy, vetCallbackUrl } from "./vet-callback-url.ts";

function policy(environment: CallbackPolicy["environment"], ...list: string[]): CallbackPolicy {
  const parsed = parseAllowedTargets(list);
  if (!parsed.ok) throw new Error("bad list");
  return { allowedCallbacks: parsed.targets, environment };
}

test("W7 a receiver that is not listed is public and https", () => {
  const production = policy("production");
  expect(vetCallbackUrl("https://hooks.example.com/x", production)).toMatchObject({
    ok: true,
    url: { reach: "PUBLIC" },
  });
  expect(vetCallbackUrl("http://hooks.example.com/x", production)).toEqual({ ok: false, reason: "https_required" });
  expect(vetCallbackUrl("https://10.0.0.5/x", production)).toMatchObject({ ok: false, reason: "address" });
  expect(vetCallbackUrl("https://receiver/x", production)).toMatchObject({ ok: false, reason: "host_single_label" });
});

test("W7 a listed receiver may be private and plain http, in every environment", () => {
  const production = policy("production", "10.0.0.5:8080", "receiver:80");
  expect(vetCallbackUrl("http://10.0.0.5:8080/x", production)).toMatchObject({ ok: true, url: { reach: "PRIVATE" } });
  expect(vetCallbackUrl("http://receiver/x", production)).toMatchObject({ ok: true, url: { name: "receiver" } });
  expect(vetCallbackUrl("http://10.0.0.5:8081/x", production)).toMatchObject({ ok: false, reason: "address" });
});

test("W7 loopback is a receiver in development and test only, by literal and by name", () => {
  for (const environment of ["development", "test"] as const) {
    const local = policy(environment, "127.0.0.1:9000", "localhost:9000");
    expect(vetCallbackUrl("http://127.0.0.1:9000/", local)).toMatchObject({ ok: true, url: { reach: "LOCAL" } });
  }
  for (const environment of ["staging", "production"] as const) {
    const remote = policy(environment, "127.0.0.1:9000", "[::1]:9000", "0.0.0.0:9000", "localhost:9000");
    for (const host of ["127.0.0.1", "[::1]", "0.0.0.0"]) {
      expect(vetCallbackUrl(`http://${host}:9000/`, remote)).toMatchObject({ ok: false, reason: "address" });
    }
    const named = vetCallbackUrl("http://localhost:9000/", remote);
    const reach = named.ok ? named.url.reach : "LOCAL";
    expect(vetAddresses(["127.0.0.1"], { reach })).toMatchObject({ ok: false });
  }
});

test("W7 a metadata service is never a receiver", () => {
  for (const environment of ["development", "production"] as const) {
    const all = policy(
      environment,
      "169.254.169.254:80",
      "100.100.100.200:80",
      "168.63.129.16:80",
      "192.0.0.192:80",
      "[fd00:ec2::254]:80",
      "metadata.goog:80",
    );
    for (const host of [
      "169.254.169.254",
      "100.100.100.200",
      "168.63.129.16",
      "192.0.0.192",
      "[fd00:ec2::254]",
      "metadata.goog",
    ]) {
      expect(vetCallbackUrl(`http://${host}/`, all)).toMatchObject({ ok: false });
    }
  }
});
