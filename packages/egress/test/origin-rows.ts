import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync } from "node:zlib";
import {
  bytes,
  bytesThenEnd,
  type OriginBehaviour,
  type OriginReply,
  page,
  redirect,
  stall,
} from "@keble-scraper/testkit";
import { expect } from "vitest";
import type { FetchRequest } from "../src/index.ts";
import type { Fetched } from "./rig.ts";

/** `[status, body bytes]`, or `[status, body bytes, redirects]`, or the failure's code and disposition. */
export type Expected = readonly [number, number, number?] | readonly [string, "RETRY" | "TERMINAL" | "RETRY_AT"];
type Row = readonly [id: string, behaviour: OriginBehaviour, expected: Expected, overrides?: Partial<FetchRequest>];

const OK = "HTTP/1.1 200 OK\r\n";
const ZEROS = Buffer.alloc(100_000_000);
const BOMB_GZIP = gzipSync(ZEROS);
const BOMB_BROTLI = brotliCompressSync(ZEROS, { params: { 1: 4 } });
const PACKED = gzipSync(Buffer.from("text ".repeat(100)));

function encoded(coding: string, body: Buffer): OriginBehaviour {
  return (reply) => reply.send({ headers: { "Content-Encoding": coding }, body });
}

/** Writes `piece` for ever, at full speed or with a pause. */
function endless(head: string, piece: string | Buffer, pauseMs = 0): OriginBehaviour {
  return async (reply) => {
    await reply.write(head);
    while (!reply.isClosed()) {
      await reply.write(piece);
      if (pauseMs > 0) await pause(reply, pauseMs);
    }
  };
}

async function pause(reply: OriginReply, ms: number): Promise<void> {
  await Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), reply.closed]);
}

const resetNow: OriginBehaviour = (reply) => {
  reply.reset();
};

const MANY_HEADERS = Array.from({ length: 2_000 }, (_, index) => `h${index % 10}: 1\r\n`).join("");

const PLAIN_HTTP: readonly Row[] = [
  ["ok-length", page("hello"), [200, 5]],
  ["ok-chunked", bytes(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`), [200, 5]],
  [
    "ok-chunked-trailers",
    bytes(`${OK}Transfer-Encoding: chunked\r\n\r\n5;ext=1\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n`),
    [200, 5],
  ],
  // Nobody asked for a coding of the transfer; as it came, the body would be stored packed.
  [
    "transfer-gzip",
    bytesThenEnd(`${OK}Transfer-Encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    ["DECODING_FAILED", "TERMINAL"],
  ],
  [
    "transfer-chunked-upper-case",
    bytesThenEnd(`${OK}Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    [200, 5],
  ],
  ["ok-close", bytesThenEnd(`${OK}\r\nhello`), [200, 5]],
  ["ok-http10", bytesThenEnd("HTTP/1.0 200 OK\r\n\r\nhello"), [200, 5]],
  ["ok-noreason", bytes("HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello"), [200, 5]],
  ["ok-empty", bytes(`${OK}Content-Length: 0\r\n\r\n`), [200, 0]],
  ["gzip-ok", encoded("gzip", PACKED), [200, 500]],
  [
    "gzip-case",
    (reply) =>
      reply.send({
        headers: { "Content-Encoding": ["GZIP", "br"] },
        body: brotliCompressSync(gzipSync("hello")),
      }),
    [200, 5],
  ],
  ["gzip-identity", encoded("identity, gzip", gzipSync("hello")), [200, 5]],
  ["gzip-empty", encoded("gzip", Buffer.alloc(0)), [200, 0]],
  ["gzip-two-members", encoded("gzip", Buffer.concat([gzipSync("hel"), gzipSync("lo")])), [200, 5]],
  ["br-ok", encoded("br", brotliCompressSync("hello")), [200, 5]],
  ["deflate-zlib", encoded("deflate", deflateSync("hello")), [200, 5]],
  ["deflate-raw", encoded("deflate", deflateRawSync("hello")), [200, 5]],
  ["coding-unknown", encoded("zstd", Buffer.from("hello")), ["DECODING_FAILED", "TERMINAL"]],
  ["coding-three", encoded("gzip, gzip, gzip", gzipSync(gzipSync(gzipSync("hello")))), [200, 5]],
  [
    "coding-four",
    encoded("gzip, gzip, gzip, gzip", gzipSync(gzipSync(gzipSync(gzipSync("hello"))))),
    ["DECODING_FAILED", "TERMINAL"],
  ],
  ["bomb-gzip", encoded("gzip", BOMB_GZIP), ["BODY_TOO_LARGE", "TERMINAL"]],
  ["bomb-gzip-nested", encoded("gzip, gzip", gzipSync(BOMB_GZIP)), ["BODY_TOO_LARGE", "TERMINAL"]],
  ["bomb-br", encoded("br", BOMB_BROTLI), ["BODY_TOO_LARGE", "TERMINAL"]],
  ["gzip-truncated", encoded("gzip", PACKED.subarray(0, Math.floor(PACKED.length / 2))), ["TRUNCATED_BODY", "RETRY"]],
  ["br-truncated", encoded("br", brotliCompressSync("hello ".repeat(50)).subarray(0, 8)), ["TRUNCATED_BODY", "RETRY"]],
  ["gzip-not-gzip", encoded("gzip", Buffer.from("plain text")), ["DECODING_FAILED", "TERMINAL"]],
  ["br-not-br", encoded("br", Buffer.from("plain text, not brotli")), ["DECODING_FAILED", "TERMINAL"]],
  ["gzip-trailing", encoded("gzip", Buffer.concat([PACKED, Buffer.from("junk")])), ["DECODING_FAILED", "TERMINAL"]],
  ["cl-short", bytesThenEnd(`${OK}Content-Length: 100\r\n\r\nhello`), ["TRUNCATED_BODY", "RETRY"]],
  [
    "cl-short-close",
    bytesThenEnd(`${OK}Connection: close\r\nContent-Length: 100\r\n\r\nhello`),
    ["TRUNCATED_BODY", "RETRY"],
  ],
  ["cl-long", bytes(`${OK}Content-Length: 5\r\n\r\nhello and fifteen`), [200, 5]],
  ["cl-two", bytes(`${OK}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["cl-same", bytes(`${OK}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["cl-neg", bytes(`${OK}Content-Length: -1\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["cl-overflow", bytes(`${OK}Content-Length: 99999999999999999999\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["cl-declared-huge", stall(`${OK}Content-Length: 3000000\r\n\r\n`), ["BODY_TOO_LARGE", "TERMINAL"]],
  [
    "cl-and-te",
    bytes(`${OK}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  ["chunk-cut", bytesThenEnd(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`), ["TRUNCATED_BODY", "RETRY"]],
  [
    "chunk-cut-close",
    bytesThenEnd(`${OK}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`),
    ["TRUNCATED_BODY", "RETRY"],
  ],
  [
    "chunk-cut-inside-close",
    bytesThenEnd(`${OK}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhello`),
    ["TRUNCATED_BODY", "RETRY"],
  ],
  [
    "chunk-huge",
    bytes(`${OK}Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nhello`),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  [
    "chunk-bad-size-close",
    bytes(`${OK}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n`),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  [
    "chunk-ext-flood",
    endless(`${OK}Transfer-Encoding: chunked\r\n\r\n5;`, "e".repeat(16_384)),
    ["BODY_TOO_LARGE", "TERMINAL"],
  ],
  [
    "trailer-flood",
    endless(`${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n`, `X-T: ${"t".repeat(1_000)}\r\n`),
    ["HEADERS_TOO_LARGE", "TERMINAL"],
  ],
  ["reason-flood", endless("HTTP/1.1 200 ", "r".repeat(16_384)), ["HEADERS_TOO_LARGE", "TERMINAL"]],
  ["hdr-drip", endless(OK, "X-Slow: 1\r\n", 100), ["RESPONSE_TIMEOUT", "RETRY"]],
  ["hdr-flood", endless(OK, `X-Flood: ${"f".repeat(1_000)}\r\n`), ["HEADERS_TOO_LARGE", "TERMINAL"]],
  ["hdr-giant", bytes(`${OK}X-Giant: ${"g".repeat(100_000)}\r\n\r\n`), ["HEADERS_TOO_LARGE", "TERMINAL"]],
  ["hdr-many", bytes(`${OK}${MANY_HEADERS}Content-Length: 5\r\n\r\nhello`), ["HEADERS_TOO_LARGE", "TERMINAL"]],
  ["hdr-stall", stall(OK), ["RESPONSE_TIMEOUT", "RETRY"]],
  ["never-answers", (reply) => reply.closed, ["RESPONSE_TIMEOUT", "RETRY"]],
  ["body-stall", stall(`${OK}Content-Length: 10\r\n\r\nhello`), ["BODY_TIMEOUT", "RETRY"]],
  ["body-stall-at-once", stall(`${OK}Content-Length: 10\r\n\r\n`), ["BODY_TIMEOUT", "RETRY"]],
  [
    "body-drip",
    endless(`${OK}Content-Length: 1000000\r\n\r\n`, "d", 50),
    ["BODY_TIMEOUT", "RETRY"],
    { attemptLimitMs: 900 },
  ],
  ["body-infinite", endless(`${OK}\r\n`, Buffer.alloc(65_536, "b")), ["BODY_TOO_LARGE", "TERMINAL"]],
  ["info-flood", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 5), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["info-drip", endless("", "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", 100), ["RESPONSE_TIMEOUT", "RETRY"]],
  [
    "info-3-then-200",
    bytes(`${"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(3)}${OK}Content-Length: 5\r\n\r\nhello`),
    [200, 5],
  ],
  [
    "info-100",
    bytes(`HTTP/1.1 100 Continue\r\n\r\n${OK}Content-Length: 5\r\n\r\nhello`),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  [
    "info-101",
    bytes("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  ["info-101-plain", bytes("HTTP/1.1 101 X\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["info-101-upgrade-only", bytes("HTTP/1.1 101 X\r\nUpgrade: h2c\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["info-101-then-end", bytesThenEnd("HTTP/1.1 101 X\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  [
    "info-101-then-200",
    bytes(`HTTP/1.1 101 X\r\n\r\n${OK}Content-Length: 5\r\n\r\nhello`),
    ["MALFORMED_RESPONSE", "TERMINAL"],
  ],
  ["info-101-head", bytes("HTTP/1.1 101 X\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"], { method: "HEAD" }],
  ["204-body", bytes("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"), [204, 0]],
  ["204-clean", bytes("HTTP/1.1 204 No Content\r\n\r\n"), [204, 0]],
  ["204-stall", stall("HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"), [204, 0]],
  ["304-length", bytes("HTTP/1.1 304 Not Modified\r\nContent-Length: 5000\r\n\r\n"), [304, 0]],
  ["head-length", bytes(`${OK}Content-Length: 5000\r\n\r\n`), [200, 0], { method: "HEAD" }],
  ["head-length-huge", bytes(`${OK}Content-Length: 50000000\r\n\r\n`), [200, 0], { method: "HEAD" }],
  ["head-body", bytes(`${OK}Content-Length: 5\r\n\r\nhello`), [200, 0], { method: "HEAD" }],
  ["head-chunked", bytes(`${OK}Transfer-Encoding: chunked\r\n\r\n`), [200, 0], { method: "HEAD" }],
  ["rst-now", resetNow, ["CONNECTION_RESET", "RETRY"]],
  [
    "rst-in-head",
    async (reply) => {
      await reply.write(OK);
      reply.reset();
    },
    ["CONNECTION_RESET", "RETRY"],
  ],
  [
    "rst-in-body",
    async (reply) => {
      await reply.write(`${OK}Content-Length: 100\r\n\r\nhello`);
      reply.reset();
    },
    ["TRUNCATED_BODY", "RETRY"],
  ],
  ["fin-now", bytesThenEnd(""), ["CONNECTION_RESET", "RETRY"]],
  ["fin-in-head", bytesThenEnd(`${OK}Content-Le`), ["CONNECTION_RESET", "RETRY"]],
  ["banner-ssh", bytes("SSH-2.0-OpenSSH_9.6\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["http09", bytesThenEnd("<html>old</html>"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["http2-preface", bytes(Buffer.from("00000404000000000000030000", "hex")), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["status-999", bytes("HTTP/1.1 999 Odd\r\nContent-Length: 5\r\n\r\nhello"), [999, 5]],
  ["status-99", bytes("HTTP/1.1 99 Odd\r\nContent-Length: 5\r\n\r\nhello"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["status-099", bytes("HTTP/1.1 099 X\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["status-099-length", bytes("HTTP/1.1 099 X\r\nContent-Length: 5\r\n\r\nhello"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["status-000-then-end", bytesThenEnd("HTTP/1.1 000 X\r\n\r\n"), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-bare-cr", bytes(`${OK}X-A: 1\rX-B: 2\r\n\r\n`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-nul", bytes(`${OK}X-A: a\0b\r\nContent-Length: 5\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-fold", bytes(`${OK}X-A: a\r\n b\r\nContent-Length: 5\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-space-colon", bytes(`${OK}X-A : a\r\nContent-Length: 5\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-no-colon", bytes(`${OK}nonsense\r\nContent-Length: 5\r\n\r\nhello`), ["MALFORMED_RESPONSE", "TERMINAL"]],
  ["hdr-latin1", bytes(`${OK}X-A: \xe9\xff\r\nContent-Length: 5\r\n\r\nhello`), [200, 5]],
  ["two-responses", bytes(`${OK}Content-Length: 5\r\n\r\nhello${OK}Content-Length: 6\r\n\r\npoison`), [200, 5]],
  [
    "alt-svc",
    (reply) =>
      reply.send({
        headers: { "Alt-Svc": 'h3=":443"', Refresh: "0; url=http://127.0.0.1/" },
        body: '<meta http-equiv="refresh" content="0;url=http://127.0.0.1">',
      }),
    [200, 60],
  ],
  [
    "status-503",
    (reply) => reply.send({ status: 503, headers: { "Retry-After": "7" }, body: "busy" }),
    ["HTTP_SERVER_ERROR", "RETRY_AT"],
  ],
  [
    "status-429",
    (reply) => reply.send({ status: 429, headers: { "Retry-After": "7" }, body: "slow down" }),
    ["RATE_LIMITED", "RETRY_AT"],
  ],
  ["status-500", (reply) => reply.send({ status: 500, body: "oops" }), ["HTTP_SERVER_ERROR", "RETRY"]],
];

const REDIRECTS: readonly Row[] = [
  ["redir-301", redirect("/ok", 301), [200, 6, 1]],
  ["redir-302", redirect("http://origin.example.com/ok"), [200, 6, 1]],
  ["redir-303", redirect("/ok", 303), [200, 6, 1]],
  ["redir-307", redirect("/ok", 307), [200, 6, 1]],
  ["redir-308", redirect("/ok", 308), [200, 6, 1]],
  ["redir-300", redirect("/ok", 300), [300, 0]],
  ["redir-305", redirect("http://proxy.example.com/", 305), [305, 0]],
  ["redir-304", redirect("/ok", 304), [304, 0]],
  ["redir-none", (reply) => reply.send({ status: 302, body: "none" }), [302, 4]],
  ["redir-empty", redirect(""), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-loopback", redirect("http://127.0.0.1/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-metadata-308", redirect("http://169.254.169.254/", 308), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-mapped", redirect("http://[::ffff:7f00:1]/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-localhost", redirect("http://localhost/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-dns-internal", redirect("http://internal-dns.example.com/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-dns-mixed", redirect("http://mixed-dns.example.com/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-file", redirect("file:///etc/passwd"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-gopher", redirect("gopher://origin.example.com/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-js", redirect("javascript:alert(1)"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-creds", redirect("http://user:pass@origin.example.com/ok"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-badport", redirect("http://origin.example.com:25/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-relative", redirect("ok"), [200, 6, 1]],
  ["redir-proto-rel", redirect("//origin.example.com/ok"), [200, 6, 1]],
  ["redir-proto-rel-int", redirect("//127.0.0.1/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-triple-slash", redirect("///127.0.0.1/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-backslash", redirect("\\\\127.0.0.1\\"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-http-noslash", redirect("http:127.0.0.1"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-http-rel", redirect("http:ok"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-spaces", redirect("   /ok   "), [200, 6, 1]],
  ["redir-space-in", redirect("/o k"), [200, 6, 2]],
  ["redir-fragment", redirect("/ok#frag"), [200, 6, 1]],
  ["redir-tab", redirect("http://127.0.0\t.1/"), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-latin1", redirect("/caf\xe9"), [200, 6, 1]],
  ["redir-utf8", redirect("/caf\xc3\xa9"), [200, 6, 1]],
  [
    "redir-two-loc",
    (reply) => reply.send({ status: 302, headers: { Location: ["/ok", "/other"] } }),
    ["REDIRECT_FORBIDDEN", "TERMINAL"],
  ],
  ["redir-two-same", (reply) => reply.send({ status: 302, headers: { Location: ["/ok", "/ok"] } }), [200, 6, 1]],
  ["redir-self", redirect("/start"), ["TOO_MANY_REDIRECTS", "TERMINAL"]],
  ["redir-self-fragment", redirect("/start#again"), ["TOO_MANY_REDIRECTS", "TERMINAL"]],
  ["redir-pingpong", redirect("/pong"), ["TOO_MANY_REDIRECTS", "TERMINAL"]],
  ["redir-5", redirect("/hop-4"), [200, 6, 5]],
  ["redir-6", redirect("/hop-5"), ["TOO_MANY_REDIRECTS", "TERMINAL"]],
  ["redir-long", redirect(`/${"l".repeat(10_000)}`), ["REDIRECT_FORBIDDEN", "TERMINAL"]],
  ["redir-body-huge", endless("HTTP/1.1 302 Found\r\nLocation: /ok\r\n\r\n", Buffer.alloc(65_536, "h")), [200, 6, 1]],
  ["redir-body-stall", stall("HTTP/1.1 302 Found\r\nLocation: /ok\r\nContent-Length: 9\r\n\r\n"), [200, 6, 1]],
];

/** What the redirects of the table lead to. */
export const LANDINGS: Readonly<Record<string, OriginBehaviour>> = {
  "/ok": page("landed"),
  "/o%20k": redirect("/ok"),
  "/caf%E9": page("landed"),
  "/caf%C3%A9": page("landed"),
  "/pong": redirect("/start"),
  "/hop-5": redirect("/hop-4"),
  "/hop-4": redirect("/hop-3"),
  "/hop-3": redirect("/hop-2"),
  "/hop-2": redirect("/hop-1"),
  "/hop-1": redirect("/ok"),
};

/** What the names of the table resolve to. */
export const ANSWERS = {
  "internal-dns.example.com": ["10.0.0.5"],
  "mixed-dns.example.com": ["93.184.216.34", "127.0.0.1"],
};

/** Every row: its invariant, its id, what its `/start` does, what has to come of it, and how it is asked for. */
export const ORIGIN_ROWS = [
  ...PLAIN_HTTP.map((row) => ["W9", ...row] as const),
  ...REDIRECTS.map((row) => ["W6", ...row] as const),
];

/** Whether a row waits for one of our limits. */
export function isTimed(expected: Expected): boolean {
  return String(expected[0]).endsWith("_TIMEOUT");
}

/** Asserts that a fetch of a row's `/start` ended as the row says. */
export function expectRow({ outcome, body }: Fetched, expected: Expected): void {
  if (typeof expected[0] === "number") {
    const [httpStatus, bodyBytes, redirects = 0] = expected;
    expect(outcome).toMatchObject({ ok: true, sent: true, response: { httpStatus, bodyBytes } });
    expect(outcome.ok && outcome.response.redirects.length).toBe(redirects);
    expect(body.length).toBe(bodyBytes);
  } else {
    const [code, disposition] = expected;
    expect(outcome).toMatchObject({ ok: false, sent: true, failure: { kind: "UPSTREAM", code, disposition } });
    // Far from the attempt's own limit: the phase's limit is what ended it.
    expect(outcome.timings.totalMs).toBeLessThan(9_000);
  }
}
