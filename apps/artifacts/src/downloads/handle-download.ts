import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import { type BinaryKey, type BinaryStore, parseBinaryKey, verifyDownloadUrl } from "@keble-scraper/artifact-store";
import type { Clock, Logger } from "@keble-scraper/service";
import { matchesTag, parseByteRange } from "./byte-range.ts";
import { toObjectHeaders } from "./download-headers.ts";
import { sendError } from "./send-error.ts";

/** What serves downloads. `basePath` is the path of the base URL, without a slash at its end. */
export type DownloadParts = {
  readonly store: Pick<BinaryStore, "head" | "read">;
  readonly signingKey: Uint8Array;
  readonly basePath: string;
  readonly clock: Clock;
  readonly logger: Logger;
};

/**
 * Answers one request for stored bytes: 404 for what is no path of ours, 405, 403 for a signature that is not ours or over,
 * 410 for bytes that are gone, else the bytes, whole or in part. Bytes are streamed; when the client leaves, the file is
 * closed. Faults are thrown before the head is sent, and cut the connection after it.
 */
export async function handleDownload(
  parts: DownloadParts,
  requestId: string,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const target = request.url ?? "";
  const key = parseDownloadPath(parts.basePath, target);
  if (key === null) return sendError(response, requestId, "NOT_FOUND");
  if (request.method !== "GET" && request.method !== "HEAD") {
    return sendError(response, requestId, "METHOD_NOT_ALLOWED", { allow: "GET, HEAD" });
  }
  const nowMs = parts.clock.wallMs();
  const verified = verifyDownloadUrl(parts.signingKey, target, nowMs);
  if (!verified.ok) {
    parts.logger.warn({ requestId, reason: verified.reason }, "download.refused");
    return sendError(response, requestId, "FORBIDDEN", {}, "The link is not valid, or no longer.");
  }
  const { auditId, contentType, disposition, expiresAtMs } = verified.claims;
  const head = await parts.store.head(key);
  if (head === null) {
    // It was there when the link was signed.
    parts.logger.warn({ requestId, auditId, ...key }, "download.gone");
    return sendError(response, requestId, "GONE");
  }
  const remainingMs = expiresAtMs - nowMs;
  const headers = toObjectHeaders({ sha256: key.sha256, contentType, disposition, remainingMs });
  await sendObject(parts, { key, auditId, sizeBytes: head.sizeBytes, headers, requestId }, request, response);
}

/** The key that a request target names below the base path, whatever its query; null for any other path. */
export function parseDownloadPath(basePath: string, target: string): BinaryKey | null {
  const path = target.split("?", 1)[0] ?? "";
  return path.startsWith(`${basePath}/`) ? parseBinaryKey(path.slice(basePath.length + 1)) : null;
}

type SentObject = {
  readonly key: BinaryKey;
  readonly auditId: string;
  readonly sizeBytes: number;
  readonly headers: ReturnType<typeof toObjectHeaders>;
  readonly requestId: string;
};

async function sendObject(
  parts: DownloadParts,
  object: SentObject,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { headers, key, requestId, sizeBytes } = object;
  const tag = `"${key.sha256}"`;
  const { "if-match": ifMatch, "if-none-match": ifNoneMatch } = request.headers;
  if (ifMatch !== undefined && !matchesTag(ifMatch, tag, "STRONG")) {
    response.writeHead(412, { ...headers, "content-length": 0 }).end();
    return;
  }
  if (ifNoneMatch !== undefined && matchesTag(ifNoneMatch, tag, "WEAK")) {
    response.writeHead(304, headers).end();
    return;
  }
  const range = requestedRange(request, tag, sizeBytes);
  if (range === "UNSATISFIABLE") {
    const contentRange = `bytes */${String(sizeBytes)}`;
    response.writeHead(416, { "content-length": 0, "content-range": contentRange, "accept-ranges": "bytes" }).end();
    return;
  }
  const { end, start } = range === "WHOLE" ? { start: 0, end: sizeBytes - 1 } : range;
  const length = end - start + 1;
  if (request.method === "HEAD" || length === 0) {
    response.writeHead(200, { ...headers, "content-length": length }).end();
    return;
  }
  const stream = await parts.store.read(key, { start, end });
  if (stream === null) return sendError(response, requestId, "GONE");
  if (range === "WHOLE") response.writeHead(200, { ...headers, "content-length": length });
  else {
    const contentRange = `bytes ${String(start)}-${String(end)}/${String(sizeBytes)}`;
    response.writeHead(206, { ...headers, "content-length": length, "content-range": contentRange });
  }
  let sent = 0;
  async function* counted(source: AsyncIterable<Uint8Array>): AsyncIterable<Uint8Array> {
    for await (const chunk of source) {
      sent += chunk.byteLength;
      yield chunk;
    }
  }
  const startedMs = parts.clock.monotonicMs();
  // `keble-scraper reconcile` holds these against the audit.
  const told = { requestId, auditId: object.auditId, ...key };
  try {
    await pipeline(stream, counted, response, { end: false });
    // An end would leave the client waiting for the rest.
    if (sent !== length) throw new Error("the file got shorter while it was served");
    response.end();
  } catch (error) {
    response.destroy();
    parts.logger.info({ ...told, sent, length, err: error }, "download.cut");
    return;
  }
  const tookMs = Math.round(parts.clock.monotonicMs() - startedMs);
  parts.logger.info({ ...told, sent, length, tookMs }, "download.served");
}

/** A range counts for GET alone, and only while `If-Range`, when sent, names exactly these bytes. */
function requestedRange(request: IncomingMessage, tag: string, sizeBytes: number): ReturnType<typeof parseByteRange> {
  const ifRange = request.headers["if-range"];
  if (request.method !== "GET") return "WHOLE";
  if (typeof ifRange === "string" && ifRange.trim() !== tag) return "WHOLE";
  return parseByteRange(request.headers.range, sizeBytes);
}
