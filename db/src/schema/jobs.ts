import { sql } from "drizzle-orm";
import {
  bigint,
  check,
  date,
  index,
  integer,
  jsonb,
  pgTable,
  smallint,
  text,
  uniqueIndex,
  uuid,
} from "drizzle-orm/pg-core";
import { artifacts } from "./artifacts.ts";
import { callbackEndpoints } from "./callback-endpoints.ts";
import { bytes, time } from "./columns.ts";

/**
 * Jobs. What the caller asked for, its budget and its deadline are written once, at submit. A lease is (id,
 * attempt_number, lease_token, lease_until). `attempts_used` counts against the budget; `attempt_number` numbers the
 * ledger without gaps and also counts attempts that were handed back.
 */
export const jobs = pgTable(
  "jobs",
  {
    id: uuid("id").primaryKey(),
    callerId: text("caller_id").notNull(),
    callbackEndpointId: uuid("callback_endpoint_id").references(() => callbackEndpoints.id),
    artifactId: uuid("artifact_id").references(() => artifacts.id),

    status: text("status").notNull().default("QUEUED"),
    attemptsUsed: smallint("attempts_used").notNull().default(0),
    attemptNumber: integer("attempt_number").notNull().default(0),
    routeIndex: smallint("route_index").notNull().default(0),
    leaseToken: uuid("lease_token"),
    attemptRoute: text("attempt_route"),
    /** Why `due_at` was moved: `host:<key>` or `route:<route>`; null when nothing moved it. Claims clear it. */
    deferredBy: text("deferred_by"),
    /** The times that admission booked for the job and that a release carries over; null when it holds none. */
    booking: jsonb("booking"),
    /**
     * Money that the running attempt may spend, and the day (UTC) of its moment; null: none. It stands on the job's row so
     * that whatever ends the attempt sees it with the lock it takes anyhow, whatever its snapshot is.
     */
    reservedMicros: bigint("reserved_micros", { mode: "number" }),
    reservedOn: date("reserved_on", { mode: "string" }),

    idempotencyKey: text("idempotency_key"),
    requestSha256: bytes("request_sha256").notNull(),
    target: jsonb("target").notNull(),
    /** What the target's rate, slots and holds are kept by: the host, with its port where it is not the scheme's own. */
    hostKey: text("host_key").notNull(),
    transport: text("transport").notNull(),
    routes: text("routes").array().notNull(),
    freshness: text("freshness").notNull(),
    accept: text("accept").notNull(),
    /** SHA-256 of all that makes two answers the same, the caller aside; null: the job takes and leaves nothing in the cache. */
    cacheKey: bytes("cache_key"),
    contentTypes: text("content_types").array(),
    robots: text("robots").notNull(),
    capture: text("capture"),
    egress: jsonb("egress"),
    labels: jsonb("labels").notNull(),
    attemptBudget: smallint("attempt_budget").notNull(),
    maxBodyBytes: bigint("max_body_bytes", { mode: "number" }).notNull(),
    costCapMicros: bigint("cost_cap_micros", { mode: "number" }).notNull(),
    costMicros: bigint("cost_micros", { mode: "number" }).notNull().default(0),
    result: jsonb("result"),
    failure: jsonb("failure"),
    /** How the job's event ended, once the event itself is purged. */
    callbackOutcome: text("callback_outcome").$type<"DELIVERED" | "DISCARDED">(),

    createdAt: time("created_at").notNull(),
    dueAt: time("due_at").notNull(),
    deadlineAt: time("deadline_at").notNull(),
    leaseUntil: time("lease_until"),
    attemptStartedAt: time("attempt_started_at"),
    /** Set while the last attempt was lost with its worker: such a job is claimed one at a time per process. */
    suspectedAt: time("suspected_at"),
    finishedAt: time("finished_at"),
    expiresAt: time("expires_at"),
  },
  (table) => [
    // claimJobs: the ring of callers, then each caller's due jobs
    index("jobs_claim")
      .on(table.transport, table.callerId, table.dueAt, table.deadlineAt)
      .where(sql`status = 'QUEUED' and suspected_at is null`),
    // claimJobs, jobs whose last worker died
    index("jobs_claim_suspect")
      .on(table.transport, table.callerId, table.dueAt, table.deadlineAt)
      .where(sql`status = 'QUEUED' and suspected_at is not null`),
    // listDueJobs
    index("jobs_due")
      .on(table.dueAt)
      .where(sql`status = 'QUEUED'`),
    // countWaitingJobs of a host
    index("jobs_host_queued")
      .on(table.hostKey)
      .where(sql`status = 'QUEUED'`),
    // resumeDeferredJobs
    index("jobs_deferred")
      .on(table.deferredBy)
      .where(sql`deferred_by is not null`),
    // recoverLeases
    index("jobs_lease")
      .on(table.leaseUntil)
      .where(sql`lease_token is not null`),
    // claimJobs with a running bound: a caller's running jobs
    index("jobs_running_caller")
      .on(table.callerId)
      .where(sql`lease_token is not null`),
    // expireJobs
    index("jobs_deadline")
      .on(table.deadlineAt)
      .where(sql`finished_at is null`),
    // submitJobs: one job per caller and key
    uniqueIndex("jobs_idempotency")
      .on(table.callerId, table.idempotencyKey)
      .where(sql`idempotency_key is not null`),
    // listJobs of a caller, newest first
    index("jobs_caller").on(table.callerId, table.id),
    // listJobs of a caller by an open status; partial indexes keep an update of a running job cheap
    index("jobs_open")
      .on(table.callerId, table.id)
      .where(sql`finished_at is null`),
    // listJobs by a terminal status, of a caller and of all
    index("jobs_ended_caller")
      .on(table.callerId, table.status, table.id)
      .where(sql`finished_at is not null`),
    index("jobs_ended")
      .on(table.status, table.id)
      .where(sql`finished_at is not null`),
    // reviewArtifacts: the youngest job that holds an artifact; purgeTombstones: whether any names it
    index("jobs_artifact")
      .on(table.artifactId, table.finishedAt)
      .where(sql`artifact_id is not null`),
    // purgeJobs, getStats
    index("jobs_expires")
      .on(table.expiresAt)
      .where(sql`expires_at is not null`),
    // countEndedInHour. Rows lie about in the order of their ends, so block ranges are enough, and cost a settle nothing.
    index("jobs_finished").using("brin", table.finishedAt),
    // listJobs by label; jobs without labels cost nothing
    index("jobs_labels")
      .using("gin", sql`labels jsonb_path_ops`)
      .where(sql`labels <> '{}'::jsonb`),
    check("jobs_status", sql`${table.status} in ('QUEUED', 'RUNNING', 'SUCCEEDED', 'FAILED', 'CANCELLED')`),
    // Lets every fence name the token alone: with the status in the fence the planner was seen to choose the lease index.
    check("jobs_running", sql`(${table.status} = 'RUNNING') = (${table.leaseToken} is not null)`),
    check("jobs_lease", sql`(${table.leaseToken} is null) = (${table.leaseUntil} is null)`),
    check(
      "jobs_finished",
      sql`(${table.status} in ('SUCCEEDED', 'FAILED', 'CANCELLED')) = (${table.finishedAt} is not null)`,
    ),
    check("jobs_result", sql`(${table.status} = 'SUCCEEDED') = (${table.result} is not null)`),
    check("jobs_failure", sql`(${table.status} = 'FAILED') = (${table.failure} is not null)`),
    // No reservation outlives its lease: what ends an attempt without settling its money fails.
    check(
      "jobs_reserved",
      sql`(${table.reservedMicros} is null) = (${table.reservedOn} is null)
          and (${table.reservedMicros} is null or (${table.leaseToken} is not null and ${table.reservedMicros} >= 0))`,
    ),
    check("jobs_cache_key", sql`octet_length(${table.cacheKey}) = 32`),
    check("jobs_callback_outcome", sql`${table.callbackOutcome} in ('DELIVERED', 'DISCARDED')`),
    check("jobs_budget", sql`${table.attemptsUsed} between 0 and ${table.attemptBudget}`),
  ],
);
