import { describe, expect, it } from "vitest";
import { z } from "zod";
import { zodDetails } from "./error-envelope.ts";
import { REQUEST_HEADERS } from "./job-sets.ts";
import { IdempotencyKey, SubmitBatch, SubmitJob, type SubmitJobInput, WaitSeconds } from "./submit-job.ts";

const url = "https://shop.example.com/p/1";

function faultsOf(body: unknown): string[] {
  const parsed = SubmitJob.safeParse(body);
  return parsed.success ? [] : zodDetails(parsed.error).map((detail) => detail.path);
}

describe("SubmitJob", () => {
  it("fills in every default of the documented example", () => {
    expect(SubmitJob.parse({ target: { url } })).toEqual({
      target: { url, method: "GET", headers: {} },
      transport: "HTTP",
      routes: ["DIRECT"],
      freshness: "NO_CACHE",
      accept: "SUCCESS_ONLY",
      contentTypes: null,
      robots: "RESPECT",
      limits: { attemptBudget: 3, deadlineSeconds: 300, maxBodyBytes: 10_485_760, costCapMicros: 0 },
      labels: {},
    });
  });

  it("takes the whole documented example", () => {
    const body = {
      target: { url, method: "GET", headers: { "accept-language": "en" } },
      transport: "HTTP",
      routes: ["DIRECT"],
      freshness: "NO_CACHE",
      accept: "SUCCESS_ONLY",
      contentTypes: null,
      robots: "RESPECT",
      limits: { attemptBudget: 3, deadline: "FIVE_MINUTES", maxBodyBytes: 10485760, costCapMicros: 0 },
      egress: { country: "us", stickyKey: "cart-42" },
      callback: { endpoint: "orders" },
      labels: { batch: "2026-11" },
    } satisfies SubmitJobInput;
    expect(SubmitJob.parse(body)).toMatchObject({ callback: { endpoint: "orders" }, egress: { country: "us" } });
  });

  it("takes the free route of the transport when none is named", () => {
    expect(SubmitJob.parse({ target: { url }, transport: "RENDER" }).routes).toEqual(["LOCAL_RENDER"]);
  });

  it.each([
    ["a list", [], ""],
    ["no target", {}, "target"],
    ["an unknown field", { target: { url }, priority: 1 }, "priority"],
    ["an unknown field of the target", { target: { url, body: "" } }, "target.body"],
    ["an unknown limit", { target: { url }, limits: { retries: 1 } }, "limits.retries"],
    ["an unknown egress wish", { target: { url }, egress: { city: "x" } }, "egress.city"],
    ["a url that is no text", { target: { url: 1 } }, "target.url"],
    ["a url that is not bounded", { target: { url: "h".repeat(100_001) } }, "target.url"],
    ["a method that writes", { target: { url, method: "POST" } }, "target.method"],
    ["a method in lower case", { target: { url, method: "get" } }, "target.method"],
    ["no route", { target: { url }, routes: [] }, "routes"],
    ["a route twice", { target: { url }, routes: ["DIRECT", "DIRECT"] }, "routes"],
    ["an unknown route", { target: { url }, routes: ["TOR"] }, "routes.0"],
    ["no attempt", { target: { url }, limits: { attemptBudget: 0 } }, "limits.attemptBudget"],
    ["eleven attempts", { target: { url }, limits: { attemptBudget: 11 } }, "limits.attemptBudget"],
    ["half an attempt", { target: { url }, limits: { attemptBudget: 1.5 } }, "limits.attemptBudget"],
    ["a deadline under 5 s", { target: { url }, limits: { deadlineSeconds: 4 } }, "limits.deadlineSeconds"],
    ["a deadline over a day", { target: { url }, limits: { deadlineSeconds: 86_401 } }, "limits.deadlineSeconds"],
    [
      "two deadlines",
      { target: { url }, limits: { deadline: "ONE_HOUR", deadlineSeconds: 60 } },
      "limits.deadlineSeconds",
    ],
    ["a negative cap", { target: { url }, limits: { costCapMicros: -1 } }, "limits.costCapMicros"],
    ["a body of nothing", { target: { url }, limits: { maxBodyBytes: 0 } }, "limits.maxBodyBytes"],
    ["more than 2^53", { target: { url }, limits: { maxBodyBytes: 2 ** 53 } }, "limits.maxBodyBytes"],
    ["a country in upper case", { target: { url }, egress: { country: "US" } }, "egress.country"],
    ["a sticky key with a blank", { target: { url }, egress: { stickyKey: "a b" } }, "egress.stickyKey"],
    ["an empty list of types", { target: { url }, contentTypes: [] }, "contentTypes"],
    ["17 types", { target: { url }, contentTypes: Array.from({ length: 17 }, (_, n) => `a/${n}`) }, "contentTypes"],
    ["any type", { target: { url }, contentTypes: ["*/*"] }, "contentTypes.0"],
    ["a type with a parameter", { target: { url }, contentTypes: ["text/html; q=1"] }, "contentTypes.0"],
    ["an empty label", { target: { url }, labels: { a: "" } }, "labels.a"],
    ["a label's key with a colon", { target: { url }, labels: { "a:b": "c" } }, "labels.a:b"],
    ["a label of 65 characters", { target: { url }, labels: { a: "x".repeat(65) } }, "labels.a"],
    ["17 labels", { target: { url }, labels: manyLabels(17) }, "labels"],
    ["null for a callback", { target: { url }, callback: null }, "callback"],
  ])("refuses %s and names the field", (_, body, path) => {
    expect(faultsOf(body)).toContain(path);
  });

  it("leaves what a URL may be to the address policy", () => {
    for (const odd of ["", "file:///etc/passwd", "h".repeat(100_000)]) {
      expect(faultsOf({ target: { url: odd } })).toEqual([]);
    }
  });

  it("takes 16 labels, media types in any case and whole families", () => {
    expect(faultsOf({ target: { url }, labels: manyLabels(16) })).toEqual([]);
    const job = SubmitJob.parse({ target: { url }, contentTypes: ["Text/HTML", "image/*", "application/ld+json"] });
    expect(job.contentTypes).toEqual(["text/html", "image/*", "application/ld+json"]);
  });

  it("turns a named deadline into its seconds", () => {
    const job = SubmitJob.parse({ target: { url }, limits: { deadline: "SIX_HOURS" } });
    expect(job.limits).toEqual({
      attemptBudget: 3,
      deadlineSeconds: 21_600,
      maxBodyBytes: 10_485_760,
      costCapMicros: 0,
    });
  });
});

describe("the headers of a target", () => {
  it("are the documented six, in any case, lower-case once parsed", () => {
    const headers = Object.fromEntries(REQUEST_HEADERS.map((name) => [name.toUpperCase(), "x"]));
    expect(SubmitJob.parse({ target: { url, headers } }).target.headers).toEqual(
      Object.fromEntries(REQUEST_HEADERS.map((name) => [name, "x"])),
    );
  });

  it.each(["cookie", "Authorization", "host", "range", "proxy-authorization", "x-forwarded-for", ""])(
    "never include %j, and the refusal names it",
    (name) => {
      expect(faultsOf({ target: { url, headers: { [name]: "x" } } })).toEqual([`target.headers.${name}`]);
    },
  );

  it("are refused when one is given twice", () => {
    expect(faultsOf({ target: { url, headers: { accept: "a", Accept: "b" } } })).toEqual(["target.headers.Accept"]);
  });

  it.each(["a\r\nhost: b", "a\nb", "a\rb", "a\0b", "", " a", "a ", "\u0100", "a\u007f", "x".repeat(4097)])(
    "are refused with the value %j",
    (value) => {
      expect(faultsOf({ target: { url, headers: { accept: value } } })).toContain("target.headers.accept");
    },
  );

  it("may hold 4,096 characters up to U+00FF", () => {
    expect(faultsOf({ target: { url, headers: { accept: "a\t \u00ff".padEnd(4096, "x") } } })).toEqual([]);
  });
});

describe("what stands beside a body", () => {
  it("an idempotency key is 1 to 255 visible ASCII characters", () => {
    expect(["k", "!~", "x".repeat(255)].every((key) => IdempotencyKey.safeParse(key).success)).toBe(true);
    expect(["", "a b", "a\n", "é", "x".repeat(256)].some((key) => IdempotencyKey.safeParse(key).success)).toBe(false);
  });

  it("a wait is 1 to 60 whole seconds", () => {
    expect([0, 61, 1.5, "5", null].some((wait) => WaitSeconds.safeParse(wait).success)).toBe(false);
    expect([1, 60].every((wait) => WaitSeconds.safeParse(wait).success)).toBe(true);
  });

  it("a batch holds 1 to 1,000 items and does not look into them", () => {
    expect(SubmitBatch.safeParse({ jobs: [] }).success).toBe(false);
    expect(SubmitBatch.safeParse({ jobs: Array.from({ length: 1_001 }) }).success).toBe(false);
    expect(SubmitBatch.safeParse({ jobs: [{ target: { url } }], atomic: true }).success).toBe(false);
    expect(SubmitBatch.safeParse({ jobs: [null, 1, "x", {}] }).success).toBe(true);
  });

  it("a submit is documented as JSON Schema with the allowed headers and without transforms", () => {
    const schema = JSON.stringify(z.toJSONSchema(SubmitJob, { io: "input" }));
    expect(schema).toContain('"propertyNames"');
    expect(schema).toContain('"if-none-match"');
    expect(schema).toContain('"deadlineSeconds"');
  });
});

function manyLabels(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, "v"]));
}
