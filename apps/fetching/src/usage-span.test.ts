import { expect, test } from "vitest";
import { readUsageSpan } from "./usage-span.ts";

const NOW = Date.parse("2026-11-30T12:00:00Z");
const spanOf = (query: Parameters<typeof readUsageSpan>[0]) => {
  const span = readUsageSpan(query, NOW);
  return span.ok ? [span.value.from.toISOString(), span.value.to.toISOString()] : span.failure.details?.[0]?.path;
};

test.each([
  [{}, ["2026-11-29T12:00:00.000Z", "2026-11-30T12:00:00.000Z"]],
  [{ to: "2026-11-02T00:00:00+01:00" }, ["2026-10-31T23:00:00.000Z", "2026-11-01T23:00:00.000Z"]],
  [{ from: "2026-11-01T00:00:00Z" }, ["2026-11-01T00:00:00.000Z", "2026-11-30T12:00:00.000Z"]],
  [
    { from: "2026-08-30T00:00:00Z", to: "2026-11-30T00:00:00Z" },
    ["2026-08-30T00:00:00.000Z", "2026-11-30T00:00:00.000Z"],
  ],
])("the time of %j ends now and begins a day before, unless it says so", (query, span) => {
  expect(spanOf(query)).toEqual(span);
});

test.each([
  { from: "2026-11-30T12:00:00Z" },
  { from: "2026-11-02T00:00:00Z", to: "2026-11-01T00:00:00Z" },
  { from: "2026-08-29T23:59:59.999Z", to: "2026-11-30T00:00:00Z" },
  { from: "1970-01-01T00:00:00Z" },
])("a time that is empty, reversed or over 92 days is refused: %j", (query) => {
  expect(spanOf(query)).toBe("from");
});
