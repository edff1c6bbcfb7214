import { describe, expect, it } from "vitest";
import { z } from "zod";
import { DETAILS_MAX, ErrorEnvelope, toErrorEnvelope, zodDetails } from "./error-envelope.ts";
import { localFailure, upstreamFailure } from "./failure.ts";

describe("toErrorEnvelope", () => {
  it("is the failure with its request, and no details when there are none", () => {
    const envelope = toErrorEnvelope(localFailure("NOT_FOUND"), { requestId: "r-1" });
    expect(envelope).toEqual({
      error: {
        kind: "LOCAL",
        origin: "REQUEST_POLICY",
        code: "NOT_FOUND",
        disposition: "TERMINAL",
        message: "There is no such resource.",
        requestId: "r-1",
      },
    });
    expect(ErrorEnvelope.parse(envelope)).toEqual(envelope);
  });

  it("keeps a service's details and cuts any to 50", () => {
    const details = Array.from({ length: 80 }, (_, index) => ({ path: `jobs.${index}`, message: "No." }));
    const own = toErrorEnvelope({ ...localFailure("INVALID_REQUEST"), details }, { requestId: "r" });
    expect(own.error.details).toHaveLength(DETAILS_MAX);
    const given = toErrorEnvelope(upstreamFailure("BLOCKED"), { requestId: "r", details: details.slice(0, 1) });
    expect(given.error.details).toEqual([{ path: "jobs.0", message: "No." }]);
  });
});

describe("zodDetails", () => {
  const schema = z.strictObject({
    list: z.array(z.strictObject({ n: z.int() })),
    map: z.record(z.string().max(2), z.int()),
  });

  it("names the exact field, an unknown one too, and a bad key", () => {
    const error = schema.safeParse({ list: [{ n: 1 }, { n: "x", b: 1 }], map: { abc: 1 } }).error!;
    expect(
      zodDetails(error)
        .map((detail) => detail.path)
        .toSorted(),
    ).toEqual(["list.1.b", "list.1.n", "map.abc"]);
  });

  it("is bounded in number and length, whatever was sent", () => {
    const hostile = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`${index}${"x".repeat(900)}`, 1]));
    const list = Array.from({ length: 200 }, () => ({ n: "x" }));
    expect(zodDetails(schema.safeParse({ list, map: {} }).error!)).toHaveLength(DETAILS_MAX);
    const details = zodDetails(schema.safeParse({ list: [], map: {}, ...hostile }).error!);
    expect(details).toHaveLength(DETAILS_MAX);
    expect(Math.max(...details.map((detail) => detail.path.length))).toBeLessThanOrEqual(200);
    expect(Math.max(...details.map((detail) => detail.message.length))).toBeLessThanOrEqual(500);
  });

  it("never repeats a value that was sent", () => {
    const secret = "hunter2-hunter2";
    const error = schema.safeParse({ list: secret, map: { a: secret } }).error!;
    expect(JSON.stringify(zodDetails(error))).not.toContain(secret);
  });
});
