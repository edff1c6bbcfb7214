import { expect, test } from "vitest";
import { isDatabaseOutage } from "./is-database-outage.ts";

test.each(["ECONNREFUSED", "CONNECT_TIMEOUT", "CONNECTION_CLOSED", "57P01", "57014", "53300", "08006", "40P01"])(
  "%s says nothing about the rows, also as the cause of a read's error",
  (code) => {
    const error = Object.assign(new Error("failed"), { code });
    expect(isDatabaseOutage(error)).toBe(true);
    expect(isDatabaseOutage(new Error("Failed query", { cause: error }))).toBe(true);
  },
);

test.each(["22P05", "23505", "42601", "ENOENT"])("%s is about what was said", (code) => {
  expect(isDatabaseOutage(Object.assign(new Error("failed"), { code }))).toBe(false);
});

test("what is no error is no outage", () => {
  for (const value of [null, undefined, "57P01", 57, {}, new Error("plain")])
    expect(isDatabaseOutage(value)).toBe(false);
});
