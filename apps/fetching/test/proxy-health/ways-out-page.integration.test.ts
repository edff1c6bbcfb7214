import { readFileSync } from "node:fs";
import { ROUTES } from "@keble-scraper/contract";
import { BLOCK_PATTERNS, isPaidRoute, ROUTE_PRICES } from "@keble-scraper/egress";
import { describe, expect, test } from "vitest";

const PAGE = readFileSync(new URL("../../../../infra/docs/ways-out.md", import.meta.url), "utf8");

/** A table's rows, without the blanks that a formatter puts into cells. */
const ROWS = PAGE.split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => cellsOf(line).join(" | "));

function cellsOf(line: string): string[] {
  return line
    .split(/(?<!\\)\|/)
    .slice(1, -1)
    .map((cell) => cell.trim());
}

const UNITS = {
  FREE: "",
  PER_REQUEST: "a request",
  PER_GIGABYTE: "a gigabyte (10^9 bytes, both directions, handshakes included)",
  PER_BROWSER_HOUR: "an hour of browser time",
} as const;

/** Operators read what a reservation is made at, and from where the figure is: the page may not lag behind the list. */
describe("the page of the ways out", () => {
  test.each(ROUTES.filter(isPaidRoute))("has the list price of %s, with its source and date", (route) => {
    const { unit, micros, source, asOf, note } = ROUTE_PRICES[route];
    const dollars = `$${(micros / 1_000_000).toFixed(micros < 10_000 ? 4 : 2)}`;
    expect(ROWS).toContain([`\`${route}\``, `${dollars} ${UNITS[unit]}`, asOf, `<${source}>`, note].join(" | "));
  });

  test.each(BLOCK_PATTERNS.map((pattern, index) => [index, pattern.name, pattern] as const))(
    "has wall %i, %s: when a page is taken for it, and why no other is",
    (_index, name, { statuses, matches }) => {
      expect(ROWS).toContain([`\`${name}\``, statuses.join(", "), matches].join(" | "));
    },
  );

  test("names no wall that is not recognised", () => {
    const section = PAGE.slice(PAGE.indexOf("## Walls"));
    const named = [...section.matchAll(/^\| `(?<name>[A-Z0-9_]+)` /gm)].map(({ groups }) => groups?.["name"]);
    expect(named).toEqual(BLOCK_PATTERNS.map(({ name }) => name));
  });
});
