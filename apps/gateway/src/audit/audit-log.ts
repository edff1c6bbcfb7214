import type { AuditPage, AuditQuery } from "@keble-scraper/contract";
import { type Database, listAuditEvents, parseCursor } from "@keble-scraper/db";
import { invalidRequest } from "../api-failure.ts";
import { fromDatabase, inTime } from "../from-database.ts";

/** Who did what, as the database has it. It is read here alone; each row is written by whoever acts. */
export type AuditLog = {
  /** A page, newest first. A cursor that is not ours is refused; DependencyUnavailable while the database is away. */
  list(query: AuditQuery): Promise<AuditPage>;
};

/** How long a page may take, in milliseconds: every way to narrow the audit is served by an index. */
const READ_MS = 3_000;

/** The audit in `database`. */
export function createAuditLog(database: Pick<Database, "reads">): AuditLog {
  return {
    async list({ cursor, ...filter }) {
      const afterId = cursor === undefined ? null : parseCursor(cursor);
      if (cursor !== undefined && afterId === null) {
        throw invalidRequest("cursor", "This is no cursor of ours.");
      }
      const page = fromDatabase(() => listAuditEvents(database.reads, { ...filter, afterId }));
      return inTime(page, READ_MS);
    },
  };
}
