import { describe, expect, test } from "vitest";
import { createLogger, type Logger } from "./logger.ts";

function capture(): { readonly logger: Logger; text(): string; line(): Record<string, unknown> } {
  const lines: string[] = [];
  const logger = createLogger({
    name: "canaries",
    level: "trace",
    destination: { write: (line: string) => void lines.push(line) },
  });
  return {
    logger,
    text: () => lines.join(""),
    line: () => JSON.parse(lines.at(-1) ?? "{}") as Record<string, unknown>,
  };
}

/** An error as clients of databases, providers and targets throw them: with everything they know in its fields. */
function leakyError(): Error {
  const cause = Object.assign(new Error("GET https://target.example/CANARY?q=CANARY failed"), {
    response: { body: "CANARY", headers: { "set-cookie": "CANARY" } },
  });
  return Object.assign(new Error("insert failed for postgres://user:CANARY@db/x with token=CANARY", { cause }), {
    code: "23505",
    detail: "Key (secret)=(CANARY)",
    query: "select 'CANARY'",
    parameters: ["CANARY"],
    request: { url: "https://CANARY.example/" },
  });
}

const LEAKS: readonly (readonly [string, (logger: Logger) => void])[] = [
  ["an error as a field", (logger) => logger.error({ err: leakyError() }, "attempt.failed")],
  ["an error as another field", (logger) => logger.error({ problem: leakyError() }, "attempt.failed")],
  ["an error alone", (logger) => logger.error(leakyError())],
  ["an error with a message", (logger) => logger.error(leakyError(), "attempt.failed")],
  ["an error as an argument", (logger) => logger.error("failed: %s", leakyError().message)],
  ["an error object as an argument", (logger) => logger.error("failed: %o", leakyError())],
  ["an aggregate", (logger) => logger.error({ err: new AggregateError([leakyError()], "all failed") })],
  ["an authorization header", (logger) => logger.info({ authorization: "Bearer CANARY" })],
  ["a nested header", (logger) => logger.info({ request: { headers: { cookie: "CANARY" } } })],
  ["a nested list of headers", (logger) => logger.info({ request: { rawHeaders: ["cookie", "CANARY"] } })],
  [
    "a key, token, password and secret",
    (logger) =>
      logger.info({ apiKey: "CANARY", serviceToken: "CANARY", PGPASSWORD: "CANARY", webhook_secret: "CANARY" }),
  ],
  ["a URL by its name", (logger) => logger.info({ targetUrl: "CANARY", "final-url": "CANARY", href: "CANARY" })],
  ["a URL by its look", (logger) => logger.info({ where: "see https://u:CANARY@host/CANARY?CANARY now" })],
  ["a URL object", (logger) => logger.info({ where: new URL("https://host/CANARY") })],
  ["a URL in the message", (logger) => logger.info("fetching https://host/CANARY")],
  ["a bearer in the message", (logger) => logger.info("sent Authorization: Bearer CANARY")],
  ["a callback secret", (logger) => logger.info({ note: "whsec_CANARY" })],
  ["a body", (logger) => logger.info({ body: "CANARY", payload: { a: "CANARY" }, html: "CANARY" })],
  ["bytes", (logger) => logger.info({ chunk: Buffer.from("CANARY") })],
  ["a map", (logger) => logger.info({ headersByName: new Map([["cookie", "CANARY"]]) })],
  ["a child's bindings", (logger) => logger.child({ token: "CANARY", where: "https://CANARY/" }).info("x")],
  ["a deep object", (logger) => logger.info({ a: { b: { c: { d: { e: { f: "CANARY" } } } } } })],
  ["a proxy's user name", (logger) => logger.warn({ note: "407 for brd-customer-CANARY-zone-CANARY-country-us" })],
  ["a proxy's user name and password", (logger) => logger.warn("dialled lum-customer-hl_1-zone-dc:CANARY")],
  ["a proxy without its scheme", (logger) => logger.warn({ note: "via shop:CANARY@proxy.example:44445" })],
  ["a proxy's URL", (logger) => logger.warn({ note: "via http://brd-customer-CANARY-zone-z:CANARY@proxy:1" })],
  [
    "a proxy's name and password by their names",
    (logger) => logger.warn({ username: "CANARY", proxyPassword: "CANARY" }),
  ],
  ["a proxy's header", (logger) => logger.warn("Proxy-Authorization: Basic CANARYCANARY")],
  ["a proxy's header by its name", (logger) => logger.warn({ "Proxy-Authorization": "CANARY" })],
  ["a header inside JSON", (logger) => logger.warn({ note: '{"authorization":"Bearer CANARY"}' })],
  ["an API key inside JSON", (logger) => logger.warn({ note: '{"api_key": "CANARY", "password":["CANARY"]}' })],
  [
    "an API token by its name",
    (logger) => logger.warn({ routes: { UNLOCKER: { apiKey: "CANARY", apiToken: "CANARY" } } }),
  ],
  ["a data URL", (logger) => logger.info({ note: "data:text/plain;base64,CANARYCANARY" })],
];

describe("O3 no credential, URL, body or payload leaves in a line", () => {
  test.each(LEAKS)("%s", (_what, log) => {
    const { logger, text } = capture();
    log(logger);
    expect(text()).not.toBe("");
    expect(text()).not.toContain("CANARY");
    // Bytes show their content as numbers when they are walked like a list.
    expect(text()).not.toContain(String([...Buffer.from("CANARY")]));
  });
});

test("an error keeps what explains it: name, code, message and frames, causes too", () => {
  const { logger, line } = capture();
  logger.error({ err: leakyError() }, "attempt.failed");
  expect(line()).toMatchObject({
    level: "error",
    name: "canaries",
    msg: "attempt.failed",
    err: {
      type: "Error",
      code: "23505",
      message: "insert failed for [url] with [redacted]",
      stack: expect.stringContaining("logger.test.ts") as unknown,
      cause: { message: "GET [url] failed" },
    },
  });
});

test("plain figures, ids and names stay", () => {
  const { logger, line } = capture();
  const fields = {
    jobId: "01a2",
    ordinal: 3,
    totalMs: 12.5,
    isPaid: false,
    route: "DIRECT",
    httpStatus: 200,
    bodyBytes: 9,
  };
  logger.info(fields, "attempt.ended");
  expect(line()).toMatchObject(fields);
});

test("a line is bounded, whatever is passed", () => {
  const { logger, text } = capture();
  const cyclic: Record<string, unknown> = { list: Array.from({ length: 10_000 }, () => "x".repeat(10_000)) };
  cyclic["self"] = cyclic;
  logger.info(cyclic, "y".repeat(1_000_000));
  expect(text().length).toBeLessThan(400_000);
});
