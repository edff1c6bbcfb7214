import { type AuditEvent, type AuditQuery, formatTime, type Page } from "@keble-scraper/contract";
import { and, desc, eq, gt, lt } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { auditEvents } from "../schema/audit-events.ts";
import { encodeCursor } from "./cursor.ts";
import { CLOCKS_APART_MS, firstIdAt } from "./id-at.ts";

type Filter = Omit<AuditQuery, "cursor"> & {
  /** The last id of the page before. */
  readonly afterId: string | null;
};

/**
 * A page of the audit, newest first. Ids carry their time, so a time that narrows the page bounds the ids too, a day to
 * either side: without that a page from long ago would read everything since.
 */
export async function listAuditEvents(reads: PostgresJsDatabase, filter: Filter): Promise<Page<AuditEvent>> {
  const { action, actor, afterId, callerId, limit, occurredAfter, occurredBefore, subject } = filter;
  const after = occurredAfter === undefined ? undefined : new Date(occurredAfter);
  const before = occurredBefore === undefined ? undefined : new Date(occurredBefore);
  const rows = await reads
    .select()
    .from(auditEvents)
    .where(
      and(
        action === undefined ? undefined : eq(auditEvents.action, action),
        actor === undefined ? undefined : eq(auditEvents.actor, actor),
        subject === undefined ? undefined : eq(auditEvents.subject, subject),
        callerId === undefined ? undefined : eq(auditEvents.callerId, callerId),
        after === undefined ? undefined : gt(auditEvents.occurredAt, after),
        after === undefined ? undefined : gt(auditEvents.id, firstIdAt(after.getTime() - CLOCKS_APART_MS)),
        before === undefined ? undefined : lt(auditEvents.occurredAt, before),
        before === undefined ? undefined : lt(auditEvents.id, firstIdAt(before.getTime() + CLOCKS_APART_MS)),
        afterId === null ? undefined : lt(auditEvents.id, afterId),
      ),
    )
    .orderBy(desc(auditEvents.id))
    .limit(limit + 1);
  const items = rows.slice(0, limit).map(toAuditEvent);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > limit && last !== undefined ? encodeCursor(last.id) : null };
}

function toAuditEvent(row: typeof auditEvents.$inferSelect): AuditEvent {
  return {
    id: row.id,
    occurredAt: formatTime(row.occurredAt),
    action: row.action,
    actor: row.actor,
    subject: row.subject,
    callerId: row.callerId,
    requestId: row.requestId,
    details: row.details as AuditEvent["details"],
  };
}
