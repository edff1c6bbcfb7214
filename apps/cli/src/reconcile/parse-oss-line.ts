import {
  decodeKey,
  malformed,
  type LoggedRead,
  type ParsedLine,
  parseRecord,
  readAuditId,
  sentBytes,
  textOf,
} from "./log-line.ts";
import { parseLogTime } from "./log-time.ts";

const READ = "GetObject";

/**
 * Reads a line of OSS' real-time log, one JSON object with texts for values. Its times have no zone: they are read in
 * `offsetMinutes` from UTC, unless the log service's own `__time__` (Unix seconds) is there.
 */
export function createOssParser(offsetMinutes: number): (line: string) => ParsedLine {
  return (line) => {
    const entry = parseRecord(line);
    const operation = entry === null ? null : textOf(entry, "operation");
    if (entry === null || operation === null) return malformed("not a line of an OSS real-time log");
    const at = readTime(entry, offsetMinutes);
    if (at === null) return malformed("no time");
    if (operation !== READ || !sentBytes(textOf(entry, "http_status"))) return { kind: "OTHER", at };
    const [requestId, object] = [textOf(entry, "request_id"), textOf(entry, "object")];
    const key = object === null ? null : decodeKey(object);
    if (requestId === null) return malformed("no request id");
    if (key === null) return malformed("no key");
    return {
      kind: "READ",
      read: {
        requestId,
        at,
        bucket: textOf(entry, "bucket") ?? "",
        key: key.replace(/^\//, ""),
        auditId: readAuditId(queryOf(textOf(entry, "request_uri") ?? "")),
        signedBy: toSignedBy(entry["sign_type"]),
        accessKeyId: textOf(entry, "access_id"),
      },
    };
  };
}

function readTime(entry: Readonly<Record<string, unknown>>, offsetMinutes: number): Date | null {
  const seconds = entry["__time__"];
  if (typeof seconds === "number" || (typeof seconds === "string" && /^\d{1,11}$/.test(seconds))) {
    return new Date(Number(seconds) * 1000);
  }
  return parseLogTime(textOf(entry, "time") ?? "", offsetMinutes);
}

/** The query of a request URI, which may as a whole be percent-encoded once more. */
function queryOf(uri: string): string {
  const plain = uri.includes("?") ? uri : (decodeKey(uri) ?? "");
  const queryAt = plain.indexOf("?");
  return queryAt < 0 ? "" : (plain.slice(queryAt + 1).split(" ", 1)[0] ?? "");
}

function toSignedBy(signType: unknown): LoggedRead["signedBy"] {
  switch (signType) {
    case "UriSign":
      return "LINK";
    case "NormalSign":
      return "KEY";
    case "NotSign":
      return "NOBODY";
    default:
      return "UNKNOWN";
  }
}
