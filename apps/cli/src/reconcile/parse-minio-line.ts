import {
  malformed,
  type LoggedRead,
  type ParsedLine,
  parseRecord,
  readAuditIdOf,
  recordOf,
  sentBytes,
  textOf,
} from "./log-line.ts";
import { parseIsoTime } from "../parse-iso-time.ts";

type Fields = Readonly<Record<string, unknown>>;

const READ = "GetObject";

/**
 * Reads a line of MinIO's audit log, one JSON object. How a request was signed is told by where its signature was: in the
 * query, or in an Authorization header, which the log holds in full and nothing here keeps.
 */
export function parseMinioLine(line: string): ParsedLine {
  const entry = parseRecord(line);
  const api = entry === null ? null : recordOf(entry["api"]);
  if (entry === null || api === null) return malformed("not a line of a MinIO audit log");
  const at = parseIsoTime(textOf(entry, "time") ?? "");
  if (at === null) return malformed("no time");
  const status = api["statusCode"];
  if (textOf(api, "name") !== READ || !sentBytes(typeof status === "number" ? status : null)) {
    return { kind: "OTHER", at };
  }
  const [requestId, key] = [textOf(entry, "requestID"), textOf(api, "object")];
  if (requestId === null) return malformed("no request id");
  if (key === null) return malformed("no key");
  const query = recordOf(entry["requestQuery"]) ?? {};
  return {
    kind: "READ",
    read: {
      requestId,
      at,
      bucket: textOf(api, "bucket") ?? "",
      key,
      auditId: readAuditIdOf(query),
      signedBy: toSignedBy(query, recordOf(entry["requestHeader"]) ?? {}),
      accessKeyId: textOf(entry, "accessKey"),
    },
  };
}

function toSignedBy(query: Fields, headers: Fields): LoggedRead["signedBy"] {
  if (has(query, "x-amz-signature") || has(query, "signature")) return "LINK";
  return has(headers, "authorization") ? "KEY" : "NOBODY";
}

function has(fields: Fields, name: string): boolean {
  return Object.keys(fields).some((field) => field.toLowerCase() === name);
}
