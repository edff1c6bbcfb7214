/** One successful read of an object's bytes, as a line of an access log tells it. */
export type LoggedRead = {
  /** The store's name for the request. */
  readonly requestId: string;
  readonly at: Date;
  /** Null: a log of one store alone. */
  readonly bucket: string | null;
  /** Decoded, without a slash at its beginning. */
  readonly key: string;
  /** What `x-keble-audit-id` said; null: it was not there. Said twice, both, with a comma between. */
  readonly auditId: string | null;
  /** LINK: in the query, as a link is. KEY: in a header. NOBODY: not at all. UNKNOWN: the log does not say. */
  readonly signedBy: "LINK" | "KEY" | "NOBODY" | "UNKNOWN";
  /** Whose key signed; null: the log does not say. */
  readonly accessKeyId: string | null;
};

/** What a line is worth. OTHER: a request that read no bytes, or none at all; `at` null when it has no time. */
export type ParsedLine =
  | { readonly kind: "READ"; readonly read: LoggedRead }
  | { readonly kind: "OTHER"; readonly at: Date | null }
  | { readonly kind: "MALFORMED"; readonly reason: string };

/** Reads one line, without its line end. */
export type ParseLine = (line: string) => ParsedLine;

const AUDIT_PARAMETER = "x-keble-audit-id";

/** A line that this parser can't read. */
export function malformed(reason: string): ParsedLine {
  return { kind: "MALFORMED", reason };
}

/** True for the statuses that come with bytes of an object. */
export function sentBytes(status: string | number | null): boolean {
  return status === "200" || status === "206" || status === 200 || status === 206;
}

/** The audit id in a query string; null: there is none. */
export function readAuditId(query: string): string | null {
  return joinIds(new URLSearchParams(query).getAll(AUDIT_PARAMETER));
}

/** The audit id in a map of query parameters, whose values are texts or lists of them. */
export function readAuditIdOf(query: Readonly<Record<string, unknown>>): string | null {
  const value = query[AUDIT_PARAMETER];
  if (typeof value === "string") return value;
  return Array.isArray(value) ? joinIds(value.filter((each) => typeof each === "string")) : null;
}

function joinIds(ids: readonly string[]): string | null {
  return ids.length === 0 ? null : ids.join(",");
}

/** A percent-encoded key; null: it is not encoded that way. */
export function decodeKey(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** A JSON object; null for anything else. */
export function parseRecord(line: string): Readonly<Record<string, unknown>> | null {
  try {
    return recordOf(JSON.parse(line));
  } catch {
    return null;
  }
}

/** A value that is an object, else null. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> | null {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : null;
}

/** A field that is a text and says something, else null. A hyphen stands for nothing. */
export function textOf(record: Readonly<Record<string, unknown>>, name: string): string | null {
  const value = record[name];
  return typeof value === "string" && value !== "" && value !== "-" ? value : null;
}
