import { type DetailedFailure, failed, localFailure, ok, type Result } from "@keble-scraper/contract";

/** The opaque cursor of a list ordered by id: the 16 bytes of the last id seen, base64url. */
export function encodeCursor(id: string): string {
  return Buffer.from(id.replaceAll("-", ""), "hex").toString("base64url");
}

/** The id in a cursor; null when the text is no cursor of ours. */
export function parseCursor(cursor: string): string | null {
  const bytes = Buffer.from(cursor, "base64url");
  if (bytes.length !== 16 || bytes.toString("base64url") !== cursor) return null;
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The id behind a list's cursor; null: from the start. One that is not ours is refused. */
export function readCursor(cursor: string | undefined): Result<string | null, DetailedFailure> {
  const afterId = cursor === undefined ? null : parseCursor(cursor);
  return cursor !== undefined && afterId === null ? refusedCursor() : ok(afterId);
}

/** The refusal of a cursor that no list of ours gave. */
export function refusedCursor(): Result<never, DetailedFailure> {
  const details = [{ path: "cursor", message: "Give back a cursor as it came." }];
  return failed({ ...localFailure("INVALID_REQUEST"), details });
}
