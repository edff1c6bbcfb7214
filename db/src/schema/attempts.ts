import { sql } from "drizzle-orm";
import { bigint, check, index, integer, jsonb, pgTable, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { artifacts } from "./artifacts.ts";
import { time } from "./columns.ts";
import { jobs } from "./jobs.ts";

/** The ledger: one row per ended attempt, inserted once, never changed; leaves only with its job (triggers hold both). */
export const attempts = pgTable(
  "attempts",
  {
    id: uuid("id").primaryKey(),
    jobId: uuid("job_id")
      .notNull()
      .references(() => jobs.id, { onDelete: "cascade" }),
    evidenceArtifactId: uuid("evidence_artifact_id").references(() => artifacts.id),
    outcome: text("outcome").notNull(),
    ordinal: integer("ordinal").notNull(),
    leaseToken: uuid("lease_token").notNull(),
    route: text("route").notNull(),
    httpStatus: integer("http_status"),
    failure: jsonb("failure"),
    bodyBytes: bigint("body_bytes", { mode: "number" }).notNull().default(0),
    wireBytes: bigint("wire_bytes", { mode: "number" }).notNull().default(0),
    timings: jsonb("timings").notNull().default({}),
    costReservedMicros: bigint("cost_reserved_micros", { mode: "number" }).notNull().default(0),
    costMicros: bigint("cost_micros", { mode: "number" }).notNull().default(0),
    providerRequestId: text("provider_request_id"),
    startedAt: time("started_at").notNull(),
    finishedAt: time("finished_at").notNull(),
  },
  (table) => [
    // listAttempts, and no two attempts of a job with one number
    uniqueIndex("attempts_job_ordinal").on(table.jobId, table.ordinal),
    // reviewArtifacts: the youngest attempt whose evidence an artifact is; purgeTombstones: whether any names it
    index("attempts_evidence")
      .on(table.evidenceArtifactId, table.finishedAt)
      .where(sql`evidence_artifact_id is not null`),
    check("attempts_outcome", sql`${table.outcome} in ('SUCCEEDED', 'FAILED', 'LOST', 'CANCELLED', 'HANDED_BACK')`),
    check("attempts_failure", sql`(${table.outcome} in ('FAILED', 'LOST')) = (${table.failure} is not null)`),
  ],
);
