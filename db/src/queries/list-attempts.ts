import { type Attempt, type Page, formatTime } from "@keble-scraper/contract";
import { and, asc, eq, gt } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { attempts } from "../schema/attempts.ts";
import { encodeCursor } from "./cursor.ts";

/** A page of a job's ledger, oldest first. `afterId` is the last id of the page before. */
export async function listAttempts(
  reads: PostgresJsDatabase,
  query: { readonly jobId: string; readonly afterId: string | null; readonly limit: number },
): Promise<Page<Attempt>> {
  const after = query.afterId === null ? undefined : gt(attempts.ordinal, ordinalOf(reads, query.afterId));
  const rows = await reads
    .select()
    .from(attempts)
    .where(and(eq(attempts.jobId, query.jobId), after))
    .orderBy(asc(attempts.ordinal))
    .limit(query.limit + 1);
  const items = rows.slice(0, query.limit).map(toAttempt);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > query.limit && last !== undefined ? encodeCursor(last.id) : null };
}

function ordinalOf(reads: PostgresJsDatabase, id: string) {
  return reads.select({ ordinal: attempts.ordinal }).from(attempts).where(eq(attempts.id, id));
}

type AttemptRow = typeof attempts.$inferSelect;

/** Stages that were not reached are null, also in rows that recovery wrote. */
function toAttempt(row: AttemptRow): Attempt {
  const timings = row.timings as Partial<Attempt["timings"]>;
  return {
    id: row.id,
    ordinal: row.ordinal,
    route: row.route as Attempt["route"],
    startedAt: formatTime(row.startedAt),
    finishedAt: formatTime(row.finishedAt),
    outcome: row.outcome as Attempt["outcome"],
    httpStatus: row.httpStatus,
    failure: row.failure as Attempt["failure"],
    bodyBytes: row.bodyBytes,
    wireBytes: row.wireBytes,
    timings: {
      queueMs: timings.queueMs ?? null,
      admissionMs: timings.admissionMs ?? null,
      dnsMs: timings.dnsMs ?? null,
      connectMs: timings.connectMs ?? null,
      ttfbMs: timings.ttfbMs ?? null,
      totalMs: timings.totalMs ?? null,
    },
    costReservedMicros: row.costReservedMicros,
    costMicros: row.costMicros,
    providerRequestId: row.providerRequestId,
    evidenceArtifactId: row.evidenceArtifactId,
  };
}
