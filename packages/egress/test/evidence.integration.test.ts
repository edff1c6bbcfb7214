import { gzipSync } from "node:zlib";
import { createGate, type OriginBehaviour, page, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { createRig } from "./rig.ts";

const URL_A = "http://origin.example.com/a";
const HTML = { "Content-Type": "text/html; charset=utf-8" };
const CAPTCHA = "<title>Human Verification</title><div class='g-recaptcha'></div>";
const words = "<p>Plain words of an ordinary page.</p>";

function answer(status: number, body: string | Buffer, headers: Record<string, string> = HTML): OriginBehaviour {
  return (reply) => reply.send({ status, headers, body });
}

const endless: OriginBehaviour = async (reply) => {
  await reply.write("HTTP/1.1 503 X\r\n\r\n");
  while (!reply.isClosed()) await reply.write(Buffer.alloc(65_536, "e"));
};

describe("the body of a failed answer", () => {
  it.each([
    ["a 404", 404, "NOT_FOUND"],
    ["a 403", 403, "HTTP_CLIENT_ERROR"],
    ["a 429", 429, "RATE_LIMITED"],
    ["a 500", 500, "HTTP_SERVER_ERROR"],
    ["a 305", 305, "UNACCEPTABLE_STATUS"],
  ])("W4 %s keeps it as evidence, and none of it goes to the sink", async (_what, status, code) => {
    await using origin = await startOrigin({ paths: { "/a": answer(status, "<h1>no</h1>") } });
    await using rig = createRig(origin);
    const { outcome, writes } = await rig.get(URL_A, { accept: "SUCCESS_ONLY" });
    expect(outcome).toMatchObject({
      ok: false,
      failure: { code, httpStatus: status },
      refusedBody: { contentType: HTML["Content-Type"], httpStatus: status, finalUrl: URL_A },
    });
    expect(outcome.ok || outcome.aborted ? null : outcome.refusedBody?.bytes.toString()).toBe("<h1>no</h1>");
    expect(writes).toBe(0);
  });

  it("W9 is decoded, and cut at 256 KiB", async () => {
    const body = gzipSync(Buffer.alloc(3_000_000, "x"));
    await using origin = await startOrigin({
      paths: { "/a": answer(503, body, { ...HTML, "Content-Encoding": "gzip", "Retry-After": "7" }) },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ failure: { code: "HTTP_SERVER_ERROR", disposition: "RETRY_AT" } });
    const kept = outcome.ok || outcome.aborted ? null : outcome.refusedBody;
    expect(kept?.bytes.length).toBe(262_144);
    expect(kept?.bytes.every((byte) => byte === 0x78)).toBe(true);
    await rig.transport.close(performance.now());
    await origin.allClosed();
  });

  it("W9 is not longer than the job takes", async () => {
    await using origin = await startOrigin({ paths: { "/a": answer(500, "x".repeat(5_000)) } });
    await using rig = createRig(origin);
    const { outcome } = await rig.get(URL_A, { maxBodyBytes: 1_000 });
    expect(outcome.ok || outcome.aborted ? null : outcome.refusedBody?.bytes.length).toBe(1_000);
  });

  it.each<[string, OriginBehaviour, string | null]>([
    [
      "cut",
      (reply) => reply.write("HTTP/1.1 503 X\r\nContent-Length: 100\r\n\r\nhello").then(() => reply.end()),
      "hello",
    ],
    ["reset", (reply) => reply.write("HTTP/1.1 503 X\r\nContent-Length: 100\r\n\r\n").then(() => reply.reset()), null],
    ["endless", endless, "e".repeat(262_144)],
    ["of an unknown coding", answer(503, "hello", { "Content-Encoding": "zstd" }), null],
    ["of a broken coding", answer(503, "hello", { "Content-Encoding": "gzip" }), null],
    ["empty", answer(503, ""), null],
  ])("F1 that is %s changes nothing about the failure", async (_what, behaviour, kept) => {
    await using origin = await startOrigin({ paths: { "/a": behaviour } });
    await using rig = createRig(origin);
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, failure: { code: "HTTP_SERVER_ERROR", httpStatus: 503 } });
    const bytes = outcome.ok || outcome.aborted ? undefined : outcome.refusedBody?.bytes.toString();
    expect(bytes ?? null).toBe(kept);
    await rig.transport.close(performance.now());
    await origin.allClosed();
  });

  it.each<[string, { readonly attemptLimitMs?: number; readonly deadline?: number }]>([
    ["the attempt's limit", { attemptLimitMs: 500 }],
    ["the job's deadline", { deadline: 500 }],
  ])("F1 that stalls until %s is still that answer's", async (_what, limits) => {
    await using origin = await startOrigin({
      paths: {
        "/a": (reply) =>
          reply.write("HTTP/1.1 429 X\r\nRetry-After: 9\r\nContent-Length: 9\r\n\r\nhello").then(() => reply.closed),
      },
    });
    await using rig = createRig(origin);
    const deadline = performance.now() + (limits.deadline ?? 60_000);
    const { outcome } = await rig.get(URL_A, { ...limits, deadline });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "RATE_LIMITED", disposition: "RETRY_AT" } });
    expect(outcome.ok || outcome.aborted ? null : outcome.refusedBody?.bytes.toString()).toBe("hello");
    await origin.allClosed();
  });

  it("J6 an abort while it is read is an abort", async () => {
    const written = createGate();
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          await reply.write("HTTP/1.1 503 X\r\nContent-Length: 9\r\n\r\nhello");
          written.open();
          await reply.closed;
        },
      },
    });
    await using rig = createRig(origin);
    const caller = new AbortController();
    const fetching = rig.get(URL_A, {}, caller.signal);
    await written.opened;
    // Nothing tells from outside that the head was read: both ends live in this process, a few turns of its loop do it.
    for (let turn = 0; turn < 50; turn += 1) await new Promise(setImmediate);
    caller.abort();
    expect((await fetching).outcome).toMatchObject({ ok: false, aborted: true });
    await origin.allClosed();
  });

  it("leaves its connection usable when it was read to its end", async () => {
    await using origin = await startOrigin({ paths: { "/a": answer(404, "no") } });
    await using rig = createRig(origin);
    for (let round = 0; round < 2; round += 1) {
      await rig.get(URL_A, { accept: "SUCCESS_ONLY" });
      for (let turn = 0; turn < 5; turn += 1) await new Promise(setImmediate);
    }
    expect(origin.connections()).toBe(1);
  });
});

describe("a wall's page", () => {
  const BLOCKED = {
    ok: false,
    failure: { origin: "TARGET", code: "BLOCKED", disposition: "RETRY_NEXT_ROUTE", action: "ROTATE_SESSION" },
  };

  it.each<[string, string, number, OriginBehaviour, string | null]>([
    ["under a status that is refused", "CAPTCHA", 403, answer(403, CAPTCHA), CAPTCHA],
    ["under a 200", "CAPTCHA", 200, answer(200, CAPTCHA), CAPTCHA],
    [
      "in a coding and in pieces",
      "CAPTCHA",
      200,
      async (reply) => {
        const coded = gzipSync(CAPTCHA);
        await reply.write(
          `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: ${coded.length}\r\n\r\n`,
        );
        for (const byte of coded) await reply.write(Buffer.from([byte]));
      },
      CAPTCHA,
    ],
    ["by its head alone", "AWS_WAF", 202, answer(202, "", { "x-amzn-waf-action": "challenge" }), null],
    [
      "by its head, with a body",
      "CLOUDFLARE_CHALLENGE",
      200,
      answer(200, "wait", { "cf-mitigated": "challenge" }),
      "wait",
    ],
    [
      "under a 429 that says when",
      "KASADA",
      429,
      answer(429, "<script>KPSDK</script><script src='/x/ips.js?a'>", { ...HTML, "Retry-After": "7" }),
      "<script>KPSDK</script><script src='/x/ips.js?a'>",
    ],
  ])(
    "W4 %s is BLOCKED with its evidence, whatever status is accepted, and none of it goes to the sink",
    async (_what, nativeCode, httpStatus, behaviour, kept) => {
      await using origin = await startOrigin({ paths: { "/a": behaviour } });
      for (const accept of ["ANY_RESPONSE", "SUCCESS_ONLY"] as const) {
        await using rig = createRig(origin);
        const { outcome, writes } = await rig.get(URL_A, { accept });
        expect(outcome).toMatchObject(BLOCKED);
        expect(outcome).toMatchObject({ httpStatus, failure: { nativeCode, httpStatus } });
        expect(outcome.ok || outcome.aborted ? null : (outcome.refusedBody?.bytes.toString() ?? null)).toBe(kept);
        expect(writes).toBe(0);
      }
    },
  );

  it("W4 one that is larger than what is looked at is found by its first 64 KiB, and the rest is not written either", async () => {
    const wall = `<script>window._cf_chl_opt={}</script><script src="/cdn-cgi/challenge-platform/x"></script>`;
    await using origin = await startOrigin({ paths: { "/a": answer(403, wall + words.repeat(10_000)) } });
    await using rig = createRig(origin);
    const { outcome, writes } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ...BLOCKED, failure: { nativeCode: "CLOUDFLARE_CHALLENGE" } });
    expect(writes).toBe(0);
  });

  it.each([
    ["small", words],
    ["as large as is looked at", words.repeat(1_600)],
    ["larger than that", words.repeat(10_000)],
  ])("an ordinary page that is %s arrives whole and in order", async (_what, body) => {
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          await reply.write(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n`);
          for (let at = 0; at < body.length; at += 10_000) await reply.write(body.slice(at, at + 10_000));
          reply.end();
        },
      },
    });
    await using rig = createRig(origin);
    const { outcome, body: received } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: true, response: { bodyBytes: body.length } });
    expect(received.toString()).toBe(body);
  });

  it("W9 a sink that takes its time gets the pages that were held back one by one", async () => {
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          await reply.write(`HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n`);
          for (let index = 0; index < 5; index += 1) {
            await reply.write(words);
            await new Promise(setImmediate);
          }
          reply.end();
        },
      },
    });
    await using rig = createRig(origin);
    let writing = 0;
    let most = 0;
    const sink = {
      async write() {
        writing += 1;
        most = Math.max(most, writing);
        await new Promise(setImmediate);
        writing -= 1;
      },
    };
    const outcome = await rig.fetchInto(URL_A, sink, new AbortController().signal, {});
    expect(outcome.ok).toBe(true);
    expect(most).toBe(1);
  });

  it("a page that is no HTML is not held back", async () => {
    const first = createGate();
    await using origin = await startOrigin({
      paths: {
        "/a": async (reply) => {
          await reply.write(`HTTP/1.1 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 10\r\n\r\nhello`);
          await first.opened;
          await reply.write("world");
        },
      },
    });
    await using rig = createRig(origin);
    const sink = { write: () => first.open() };
    expect((await rig.fetchInto(URL_A, sink, new AbortController().signal, {})).ok).toBe(true);
  });

  it("in the place of a robots.txt forbids nothing by itself", async () => {
    await using origin = await startOrigin({
      paths: { "/robots.txt": answer(403, CAPTCHA, { ...HTML, "cf-mitigated": "challenge" }), "/a": page("a") },
    });
    await using rig = createRig(origin);
    expect((await rig.get(URL_A, { robots: "RESPECT" })).outcome.ok).toBe(true);
  });
});
