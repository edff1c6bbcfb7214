import { type ClientRequest, type IncomingMessage, request as sendRequest, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { pipeline } from "node:stream/promises";
import { decodeLocation } from "../policy/decode-location.ts";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { FailureKind } from "../transport/failure-kind.ts";
import { hostHeader } from "../transport/request-headers.ts";
import type { ProxyAsking } from "./forward-tunnel.ts";
import { reachTarget, type ReachParts, vetProxied } from "./reach-target.ts";

/** Methods whose request has no body worth waiting for. */
const BODILESS: ReadonlySet<string> = new Set(["GET", "HEAD"]);

const NOTHING = Buffer.alloc(0);

/** Never passed on: they are between two neighbours, and one of them is our own secret. */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/**
 * Forwards one plain http request over a connection of its own to a vetted address, and the response back, at the browser's
 * pace. What may not be reached gets 403, what could not be, 502; neither says why. A response that ends early is cut for
 * the browser too. Nothing is sent twice: the browser's connection closes with the response.
 */
export async function forwardRequest(
  request: IncomingMessage,
  response: ServerResponse,
  { job, noteUpstream }: ProxyAsking,
  parts: ReachParts,
): Promise<void> {
  const url = request.url?.startsWith("http://") === true ? vetProxied(request.url, parts.policy) : null;
  const done = url === null ? null : job.begin();
  if (url === null || done === null) {
    refuse(response, 403);
    return;
  }
  response.once("close", done);
  const track = (raw: Socket): void => {
    noteUpstream(raw);
    job.track(raw);
  };
  const reached = await reachTarget(url, { stop: job.stop, timings: job.timingsFor(url), track }, parts);
  if (!reached.ok) {
    if (reached.kind !== "STOPPED") job.note(url, { kind: reached.kind, nativeCode: reached.nativeCode });
    refuse(response, reached.kind === "REFUSED" ? 403 : 502);
    return;
  }
  const upstream = reached.socket;
  response.once("close", () => upstream.destroy());
  upstream.on("data", job.check);
  const sent = send(url, request, upstream, parts.limits);
  const answer = await awaitHead(sent, parts.limits);
  if (!answer.ok) {
    upstream.destroy();
    job.note(url, { kind: answer.kind, nativeCode: answer.nativeCode });
    refuse(response, answer.kind === "HEADERS_TIMEOUT" ? 504 : 502);
    return;
  }
  const { head } = answer;
  // A main document's silence is timed by the page; this ends what nobody else would.
  head.setTimeout(2 * parts.limits.bodyIdleTimeoutMs, () => upstream.destroy());
  if (head.headers["content-length"] === undefined && head.headers["transfer-encoding"] === undefined) {
    // Its end is the connection's end, and is so for the browser.
    response.useChunkedEncodingByDefault = false;
  }
  response.writeHead(head.statusCode ?? 502, toReason(head.statusMessage), [
    ...passOn(head.rawHeaders),
    "Connection",
    "close",
  ]);
  // A head does not wait for its body's first byte; `flushHeaders` would write it in UTF-8.
  response.write(NOTHING);
  try {
    await pipeline(head, response);
  } catch {
    request.socket.destroy();
  }
}

/** Sends the browser's request on, in origin form, with its own headers but those of the hop. */
function send(url: VettedUrl, request: IncomingMessage, socket: Socket, limits: EgressLimits): ClientRequest {
  const method = request.method ?? "GET";
  const sent = sendRequest({
    method,
    path: url.target,
    setHost: false,
    maxHeaderSize: limits.headerBytesMax,
    insecureHTTPParser: false,
    createConnection: () => socket,
    headers: [...passOn(request.rawHeaders, "host"), "Host", hostHeader(url), "Connection", "close"],
  });
  // Its errors are read by `awaitHead`; one that comes later must not be uncaught.
  sent.on("error", () => {});
  if (BODILESS.has(method)) sent.end();
  else request.pipe(sent);
  return sent;
}

type Answer =
  | { readonly ok: true; readonly head: IncomingMessage }
  | { readonly ok: false; readonly kind: FailureKind; readonly nativeCode: string | null };

/** The final head, within the response timeout and the limits on heads. */
function awaitHead(sent: ClientRequest, limits: EgressLimits): Promise<Answer> {
  return new Promise((resolve) => {
    let interim = 0;
    const settle = (answer: Answer): void => {
      clearTimeout(timer);
      resolve(answer);
    };
    const fail = (kind: FailureKind, nativeCode: string | null = null): void => {
      settle({ ok: false, kind, nativeCode });
    };
    const timer = setTimeout(() => {
      fail("HEADERS_TIMEOUT");
    }, limits.responseTimeoutMs);
    sent.on("information", () => {
      interim += 1;
      if (interim > limits.informationalMax) fail("HTTP_PROTOCOL");
    });
    // A switch of protocols that nobody asked for.
    sent.once("upgrade", () => {
      fail("HTTP_PROTOCOL");
    });
    sent.once("response", (head) => {
      const framing = head.headers["transfer-encoding"];
      if (head.rawHeaders.length / 2 > limits.headerLinesMax) fail("HEADERS_TOO_LARGE");
      else if (framing !== undefined && framing.toLowerCase() !== "chunked") fail("HTTP_PROTOCOL");
      else settle({ ok: true, head });
    });
    sent.on("error", (error: NodeJS.ErrnoException) => {
      fail(kindOf(error.code ?? ""), error.code ?? null);
    });
    sent.once("close", () => {
      fail("EMPTY_RESPONSE");
    });
  });
}

function kindOf(code: string): FailureKind {
  if (code === "HPE_HEADER_OVERFLOW") return "HEADERS_TOO_LARGE";
  return code.startsWith("HPE_") ? "HTTP_PROTOCOL" : "EMPTY_RESPONSE";
}

function passOn(rawHeaders: readonly string[], ...others: readonly string[]): string[] {
  const kept: string[] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = "", value = ""] = [rawHeaders[index], rawHeaders[index + 1]];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || others.includes(lower)) continue;
    kept.push(name, lower === "location" ? toReadableLocation(value) : value);
  }
  return kept;
}

/** Parsers take any byte in a reason phrase that is on its line; writers take what may be in a header. */
function toReason(text: string | undefined): string {
  return (text ?? "").replaceAll(/[^\t\x20-\x7e\x80-\xff]/g, "");
}

/** The browser shows headers as text and drops bytes that are none in UTF-8: those are percent-encoded, as in a fetch. */
function toReadableLocation(value: string): string {
  const text = decodeLocation(value);
  return text === null ? value : Buffer.from(text, "utf8").toString("latin1");
}

function refuse(response: ServerResponse, httpStatus: 403 | 502 | 504): void {
  if (response.headersSent) return;
  response.writeHead(httpStatus, { "Content-Length": 0, Connection: "close" }).end();
}
