import { createHash, createPublicKey, X509Certificate } from "node:crypto";
import {
  bytes,
  bytesThenEnd,
  type Origin,
  page,
  readTlsFixture,
  redirect,
  requireChromium,
  stall,
  startOrigin,
  type TlsFixtureName,
} from "@keble-scraper/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findChromium } from "../src/render/index.ts";
import { openRenderRig, type RenderRig } from "./render-rig.ts";
import { createStubResolver } from "./rig.ts";

const HTML = "text/html; charset=utf-8";
const CHUNKED = `HTTP/1.1 200 OK\r\nContent-Type: ${HTML}\r\nTransfer-Encoding: chunked\r\n\r\n`;
const LENGTH = `HTTP/1.1 200 OK\r\nContent-Type: ${HTML}\r\nContent-Length: 100\r\n\r\n`;

/** By name, where TLS goes: Chromium has no authorities of ours, so that one key is trusted for itself. */
const TLS_PORTS = new Map<number, () => number>();
let origin: Origin;
let rig: RenderRig;
const tls: Origin[] = [];

async function serveTls(port: number, name: TlsFixtureName, options: object = {}): Promise<void> {
  const served = await startOrigin({
    paths: { "/": page("<p>secure", HTML) },
    tls: { ...readTlsFixture(name), ...options },
  });
  tls.push(served);
  TLS_PORTS.set(port, () => served.port);
}

beforeAll(async () => {
  await requireChromium(() => findChromium(null));
  origin = await startOrigin({ paths: { "/ok": page("<p>fine", HTML) } });
  await serveTls(8_443, "origin");
  await serveTls(8_444, "expired");
  await serveTls(8_445, "self-signed");
  await serveTls(8_446, "other");
  await serveTls(8_447, "origin", { maxVersion: "TLSv1.1", minVersion: "TLSv1" });
  const stalled = await startOrigin({ onConnection: () => "TAKEN" });
  const closing = await startOrigin({ onConnection: (socket) => (socket.destroy(), "TAKEN") });
  tls.push(stalled, closing);
  TLS_PORTS.set(8_448, () => stalled.port);
  TLS_PORTS.set(8_449, () => closing.port);
  TLS_PORTS.set(8_450, () => 1);
  const { cert } = readTlsFixture("origin");
  const spki = createPublicKey(new X509Certificate(cert).publicKey.export({ type: "spki", format: "pem" }));
  const key = createHash("sha256")
    .update(spki.export({ type: "spki", format: "der" }))
    .digest("base64");
  rig = await openRenderRig(origin, {
    trustedKeys: [key],
    resolver: createStubResolver({
      "inside.example.com": ["10.0.0.5"],
      "mixed.example.com": ["93.184.216.34", "127.0.0.1"],
    }),
    limits: { connectTimeoutMs: 3_000, responseTimeoutMs: 3_000, bodyIdleTimeoutMs: 2_000 },
    settleTimeoutMs: 1_000,
    dial: (_address, port) => ({ host: "127.0.0.1", port: TLS_PORTS.get(port)?.() ?? origin.port }),
  });
}, 300_000);

afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  await Promise.all([origin, ...tls].map((served) => served.stop()));
});

const failure = (code: string, disposition?: string) => ({
  ok: false,
  failure: { code, ...(disposition && { disposition }) },
});

describe("what origins may do, through the browser", () => {
  it.each([
    ["tls-good", 8_443, { ok: true, sent: true, response: { httpStatus: 200 } }],
    ["tls-expired", 8_444, { sent: false, ...failure("TLS_FAILURE", "TERMINAL") }],
    ["tls-self-signed", 8_445, { sent: false, ...failure("TLS_FAILURE", "TERMINAL") }],
    ["tls-wrong-name", 8_446, { sent: false, ...failure("TLS_FAILURE", "TERMINAL") }],
    ["tls-1.1-only", 8_447, { sent: false, ...failure("TLS_FAILURE", "TERMINAL") }],
    ["tls-stall", 8_448, { sent: false, ...failure("CONNECT_TIMEOUT", "RETRY") }],
    ["tls-closed", 8_449, { ok: false, failure: { disposition: "RETRY" } }],
    ["connect-refused", 8_450, { sent: false, ...failure("CONNECT_FAILURE", "RETRY") }],
  ] as const)("W6 %s", async (_id, port, expected) => {
    const { outcome } = await rig.render(`https://origin.example.com:${port}/`);
    expect(outcome).toMatchObject(expected);
  });

  it.each([
    ["redir-loopback", redirect("http://127.0.0.1/"), failure("REDIRECT_FORBIDDEN", "TERMINAL")],
    ["redir-dns-internal", redirect("http://inside.example.com/"), failure("REDIRECT_FORBIDDEN", "TERMINAL")],
    ["redir-file", redirect("file:///etc/passwd"), failure("REDIRECT_FORBIDDEN", "TERMINAL")],
    ["redir-triple-slash", redirect("///127.0.0.1/"), failure("REDIRECT_FORBIDDEN", "TERMINAL")],
    [
      "redir-two-loc",
      bytes("HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n"),
      failure("REDIRECT_FORBIDDEN"),
    ],
    ["redir-self", redirect("/row"), failure("TOO_MANY_REDIRECTS", "TERMINAL")],
    ["redir-relative", redirect("ok"), { ok: true, response: { finalUrl: "http://origin.example.com/ok" } }],
    ["redir-odd", redirect("/ok?^|'()[]{}%zz%41"), { ok: true, response: { httpStatus: 200 } }],
    ["redir-latin1", redirect("/ok?\xe9"), { ok: true, response: { finalUrl: "http://origin.example.com/ok?%E9" } }],
    [
      "redir-utf8",
      redirect("/ok?\xc3\xa9"),
      { ok: true, response: { finalUrl: "http://origin.example.com/ok?%C3%A9" } },
    ],
    [
      "redir-300",
      bytes("HTTP/1.1 300 Multiple Choices\r\nLocation: /ok\r\nContent-Length: 1\r\n\r\nx"),
      { ok: true, response: { httpStatus: 300 } },
    ],
    [
      "redir-body-huge",
      stall(`HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 99999999\r\n\r\n${"x".repeat(9_999)}`),
      { ok: true },
    ],
    [
      "reason-control",
      bytesThenEnd(`HTTP/1.1 200 Fi\x01ne\r\nContent-Type: ${HTML}\r\nContent-Length: 5\r\n\r\n<p>hi`),
      { ok: true, response: { httpStatus: 200 } },
    ],
    [
      "status-407",
      bytes("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 1\r\n\r\nx"),
      { ok: true, response: { httpStatus: 407 } },
    ],
    ["truncated-length", bytesThenEnd(`${LENGTH}<p>cut`), failure("TRUNCATED_BODY", "RETRY")],
    ["truncated-chunk", bytesThenEnd(`${CHUNKED}5\r\n<p>ab\r\n`), failure("TRUNCATED_BODY", "RETRY")],
    ["body-stalls", stall(`${LENGTH}<p>stop`), failure("BODY_TIMEOUT", "RETRY")],
    ["head-stalls", stall("HTTP/1.1 200 OK\r\n"), failure("RESPONSE_TIMEOUT", "RETRY")],
    ["no-answer", bytesThenEnd(""), failure("CONNECTION_RESET", "RETRY")],
    ["no-http", bytes("garbage\r\n\r\n"), failure("MALFORMED_RESPONSE", "TERMINAL")],
    [
      "head-too-large",
      bytes(`HTTP/1.1 200 OK\r\nA: ${"b".repeat(20_000)}\r\n\r\n`),
      failure("HEADERS_TOO_LARGE", "TERMINAL"),
    ],
    [
      "gzip-broken",
      bytesThenEnd(
        `HTTP/1.1 200 OK\r\nContent-Type: ${HTML}\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nnot gzip!`,
      ),
      failure("DECODING_FAILED"),
    ],
    [
      "declared-too-large",
      stall(`HTTP/1.1 200 OK\r\nContent-Type: ${HTML}\r\nContent-Length: 999999999\r\n\r\n`),
      failure("BODY_TOO_LARGE", "TERMINAL"),
    ],
  ] as const)("W9 %s", async (_id, behaviour, expected) => {
    origin.on("/row", behaviour);
    const { outcome } = await rig.render("http://origin.example.com/row");
    expect(outcome).toMatchObject(expected);
  });

  it("W9 follows five redirects and no sixth", async () => {
    for (let hop = 1; hop <= 6; hop += 1) origin.on(`/hop${hop}`, redirect(hop === 6 ? "/ok" : `/hop${hop + 1}`));
    expect((await rig.render("http://origin.example.com/hop1")).outcome).toMatchObject(failure("TOO_MANY_REDIRECTS"));
    const { outcome } = await rig.render("http://origin.example.com/hop2");
    expect(outcome.ok && outcome.response.redirects.length).toBe(5);
  });

  // The browser takes it for its proxy's and shows nothing of it.
  it("a 407 behind TLS is the target's answer, not asked for again", async () => {
    tls[0]?.on("/407", bytes("HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\nContent-Length: 1\r\n\r\nx"));
    const { outcome } = await rig.render("https://origin.example.com:8443/407");
    expect(outcome).toMatchObject({ sent: true, ...failure("HTTP_CLIENT_ERROR", "TERMINAL") });
  });

  it("a document's https head is held to our limits, too", async () => {
    tls[0]?.on(
      "/",
      bytes(`HTTP/1.1 200 OK\r\nContent-Type: ${HTML}\r\n${"A: b\r\n".repeat(201)}Content-Length: 1\r\n\r\nx`),
    );
    const { outcome } = await rig.render("https://origin.example.com:8443/");
    expect(outcome).toMatchObject(failure("HEADERS_TOO_LARGE", "TERMINAL"));
  });
});
