import type { AuditPage, AuditQuery } from "@keble-scraper/contract";
import { type Database, listAuditEvents, readCursor } from "@keble-scraper/db";
import { ApiFailure } from "../api-failure.ts";
import { fromDatabase, inTime } from "../from-database.ts";

/** Who did what, as the database has it. It is read here alone; each row is written by whoever acts. */
export type AuditLog = {
  /** A page, newest first. A cursor that is not ours is an ApiFailure; DependencyUnavailable while the database is away. */
  list(query: AuditQuery): Promise<AuditPage>;
};

/** How long a page may take, in milliseconds: every way to narrow the audit is served by an index. */
const READ_MS = 3_000;

/** The audit in `database`. */
export function createAuditLog(database: Pick<Database, "reads">): AuditLog {
  return {
    async list({ cursor, ...filter }) {
      const after = readCursor(cursor);
      if (!after.ok) throw new ApiFailure(after.failure);
      const page = fromDatabase(() => listAuditEvents(database.reads, { ...filter, afterId: after.value }));
      return inTime(page, READ_MS);
    },
  };
}
