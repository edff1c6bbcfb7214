import { expect, test } from "vitest";
import { isAllowedTarget, parseAllowedTargets } from "./allowed-targets.ts";

test("entries are exact hosts and ports in any letter case and IPv6 compression", () => {
  const parsed = parseAllowedTargets([" 127.0.0.1:8080 ", "LOCALHOST:3000", "[0:0::1]:8080", "origin.:80"]);
  expect(parsed).toMatchObject({ ok: true, targets: { names: new Set(["localhost", "origin"]) } });
  const targets = parsed.ok ? parsed.targets : { keys: new Set<string>(), names: new Set<string>() };
  expect(isAllowedTarget(targets, { kind: "ADDRESS", address: "::1" }, 8080)).toBe(true);
  expect(isAllowedTarget(targets, { kind: "NAME", name: "localhost" }, 3000)).toBe(true);
  expect(isAllowedTarget(targets, { kind: "NAME", name: "localhost" }, 80)).toBe(false);
});

test("an entry that is not one host with one port is named by its position", () => {
  const list = [
    "localhost:3000",
    "localhost",
    "http://localhost:80",
    "*.example.com:80",
    "10.0.0.0/8:80",
    "localhost:0",
    "localhost:65536",
    "localhost:080",
    "a:80:80",
    "0x7f.1:80",
    "127.0.0.1.:80",
    "u@localhost:80",
    "::1:80",
    "[::1]",
    "",
    "ｌｏｃａｌｈｏｓｔ:80",
  ];
  expect(parseAllowedTargets(list)).toEqual({ ok: false, invalidEntries: list.map((_, index) => index).slice(1) });
});
