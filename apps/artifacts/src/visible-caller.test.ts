import type { Principal } from "@keble-scraper/contract";
import { expect, test } from "vitest";
import { visibleCaller } from "./visible-caller.ts";

const SERVICE: Principal = {
  keyId: "018f3c2a-7d11-7abc-8def-0123456789ab",
  kind: "SERVICE",
  callerId: "shop",
  scopes: ["artifacts:read"],
};

test("a service sees its own caller's artifacts, an operator everybody's", () => {
  expect(visibleCaller(SERVICE)).toBe("shop");
  expect(visibleCaller({ ...SERVICE, kind: "OPERATOR", callerId: null })).toBeNull();
});

test("a service without a caller sees nothing: it must not read as an operator", () => {
  expect(() => visibleCaller({ ...SERVICE, callerId: null })).toThrow("without a caller");
});
