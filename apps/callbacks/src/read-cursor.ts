import { type DetailedFailure, failed, localFailure, ok, type Result } from "@keble-scraper/contract";
import { parseCursor } from "@keble-scraper/db";

/** The id behind a list's cursor; null: from the start. One that is not ours is refused. */
export function readCursor(cursor: string | undefined): Result<string | null, DetailedFailure> {
  const afterId = cursor === undefined ? null : parseCursor(cursor);
  if (cursor !== undefined && afterId === null) {
    const details = [{ path: "cursor", message: "Give back a cursor as it came." }];
    return failed({ ...localFailure("INVALID_REQUEST"), details });
  }
  return ok(afterId);
}
