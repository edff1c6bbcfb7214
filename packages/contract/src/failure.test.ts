import { describe, expect, it } from "vitest";
import { Failure, LocalFailure, UpstreamFailure, localFailure, upstreamFailure } from "./failure.ts";
import { FAILURES, LOCAL_CODES, UPSTREAM_CODES } from "./failure-table.ts";

describe("the failure table", () => {
  it("F1 has a complete row for each code, and each row makes a valid failure", () => {
    for (const code of LOCAL_CODES) {
      expect(LocalFailure.parse(localFailure(code))).toMatchObject({ kind: "LOCAL", code });
      expect(FAILURES.LOCAL[code].httpStatus).toBeGreaterThanOrEqual(400);
    }
    for (const code of UPSTREAM_CODES) {
      expect(UpstreamFailure.parse(upstreamFailure(code))).toMatchObject({ kind: "UPSTREAM", code });
      expect(FAILURES.UPSTREAM[code].httpStatus).toBeGreaterThanOrEqual(500);
    }
  });

  it("F1 holds the documented codes and no others", () => {
    expect(LOCAL_CODES).toHaveLength(23);
    expect(UPSTREAM_CODES).toHaveLength(29);
  });

  it("F1 refuses a code of the other kind, an unknown code and free fields", () => {
    expect(Failure.safeParse({ ...localFailure("INTERNAL"), code: "BLOCKED" }).success).toBe(false);
    expect(Failure.safeParse({ ...upstreamFailure("BLOCKED"), code: "OOPS" }).success).toBe(false);
    expect(Failure.safeParse({ ...localFailure("INTERNAL"), stack: "at x" }).success).toBe(false);
    expect(Failure.safeParse({ ...localFailure("INTERNAL"), action: "WAIT" }).success).toBe(false);
  });

  it("has texts that name no host, address or setting", () => {
    const rows = [
      ...LOCAL_CODES.map((code) => FAILURES.LOCAL[code]),
      ...UPSTREAM_CODES.map((code) => FAILURES.UPSTREAM[code]),
    ];
    for (const row of rows) {
      expect(`${row.text} ${row.help}`).not.toMatch(/SCRAPER_|\d+\.\d+\.\d+|localhost|postgres|redis/i);
    }
  });
});
