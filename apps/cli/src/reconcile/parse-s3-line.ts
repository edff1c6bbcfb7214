import { decodeKey, malformed, type LoggedRead, type ParsedLine, readAuditId, sentBytes } from "./log-line.ts";
import { parseLogTime } from "./log-time.ts";

/**
 * The first seventeen fields of AWS' server access log: owner, bucket, time, remote address, requester, request id, operation,
 * key, Request-URI, status, error, bytes, object size, two durations, and then Referer and User-Agent, which callers write.
 */
const HEAD = /^\S+ (\S+) \[([^\]]{1,40})\] \S+ \S+ (\S+) (\S+) (\S+) (?:"([^"]*)"|-) (\S+) \S+ \S+ \S+ \S+ \S+ (?:"|-)/;
/** What hands out an object's bytes: a GET by whatever face, and the source of a copy. */
const READS = /^(?:[A-Z]+\.GET\.OBJECT|REST\.COPY\.OBJECT_GET)$/;
/** Which of the fields after the User-Agent says how the request was signed: version id, host id, signature, cipher, this. */
const AUTH_FIELD = 4;

/**
 * Reads a line of AWS' server access log. Fields that are added behind the documented ones are passed over. What callers
 * write may hold quotes: the fields behind it are counted from the last one.
 */
export function parseS3Line(line: string): ParsedLine {
  const fields = HEAD.exec(line);
  if (fields === null) return malformed("not a line of an S3 access log");
  const [, bucket = "", time = "", requestId = "", operation = "", key = "", uri = "", status = ""] = fields;
  const at = parseLogTime(time);
  if (at === null) return malformed("no time");
  if (!READS.test(operation) || !sentBytes(status)) return { kind: "OTHER", at };
  const decoded = decodeKey(key);
  if (decoded === null || decoded === "-") return malformed("no key");
  const target = uri.split(" ")[1] ?? "";
  const queryAt = target.indexOf("?");
  const auth = line
    .slice(line.lastIndexOf('"') + 1)
    .trim()
    .split(" ")[AUTH_FIELD];
  return {
    kind: "READ",
    read: {
      requestId,
      at,
      bucket,
      key: decoded,
      auditId: queryAt < 0 ? null : readAuditId(target.slice(queryAt + 1)),
      signedBy: toSignedBy(auth),
      // The requester is an account or a role here, never a key.
      accessKeyId: null,
    },
  };
}

function toSignedBy(auth: string | undefined): LoggedRead["signedBy"] {
  switch (auth) {
    case "QueryString":
      return "LINK";
    case "AuthHeader":
      return "KEY";
    case "-":
      return "NOBODY";
    default:
      return "UNKNOWN";
  }
}
