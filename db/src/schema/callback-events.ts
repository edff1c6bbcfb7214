import { sql } from "drizzle-orm";
import { check, index, integer, jsonb, pgTable, smallint, text, uniqueIndex, uuid } from "drizzle-orm/pg-core";
import { callbackEndpoints } from "./callback-endpoints.ts";
import { time } from "./columns.ts";
import { jobs } from "./jobs.ts";

/** The outbox: one event per job with a callback, committed with the job's terminal state. */
export const callbackEvents = pgTable(
  "callback_events",
  {
    id: uuid("id").primaryKey(),
    jobId: uuid("job_id")
      .notNull()
      .references(() => jobs.id),
    endpointId: uuid("endpoint_id")
      .notNull()
      .references(() => callbackEndpoints.id),
    callerId: text("caller_id").notNull(),
    state: text("state").notNull(),
    type: text("type").notNull(),
    deadLetterReason: text("dead_letter_reason"),
    /** The exact bytes that are signed and sent: stored at the first try, re-sent as stored. */
    payload: text("payload"),
    occurredAt: time("occurred_at").notNull(),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    endedAt: time("ended_at"),
    expiresAt: time("expires_at"),
  },
  (table) => [
    // exactly one event per job; findJob, purgeJobs and deleteJob read it
    uniqueIndex("callback_events_job").on(table.jobId),
    // listEvents of an endpoint
    index("callback_events_endpoint").on(table.endpointId, table.id),
    // listEvents of what needs an operator; getStats
    index("callback_events_stuck")
      .on(table.state, table.id)
      .where(sql`state in ('DEAD_LETTER', 'DISCARDED')`),
    // listEvents of a caller
    index("callback_events_caller").on(table.callerId, table.id),
    // purgeEvents, getStats
    index("callback_events_expires")
      .on(table.expiresAt)
      .where(sql`expires_at is not null`),
    check(
      "callback_events_state",
      sql`${table.state} in ('PENDING', 'LEASED', 'DELIVERED', 'DEAD_LETTER', 'DISCARDED')`,
    ),
    check("callback_events_type", sql`${table.type} in ('job.succeeded', 'job.failed', 'job.cancelled')`),
    check("callback_events_reason", sql`(${table.state} = 'DEAD_LETTER') = (${table.deadLetterReason} is not null)`),
    check(
      "callback_events_dead_letter_reason",
      sql`${table.deadLetterReason} in ('BUDGET_SPENT', 'ENDPOINT_DISABLED', 'ENDPOINT_DELETED', 'TARGET_FORBIDDEN')`,
    ),
  ],
);

/** An obligation to deliver an event: the first, and one per accepted replay. At most one per event is open. */
export const callbackDeliveries = pgTable(
  "callback_deliveries",
  {
    id: uuid("id").primaryKey(),
    eventId: uuid("event_id")
      .notNull()
      .references(() => callbackEvents.id, { onDelete: "cascade" }),
    endpointId: uuid("endpoint_id")
      .notNull()
      .references(() => callbackEndpoints.id),
    state: text("state").notNull().default("PENDING"),
    trigger: text("trigger").notNull().default("FIRST"),
    ordinal: integer("ordinal").notNull().default(1),
    attemptBudget: smallint("attempt_budget").notNull(),
    attemptsUsed: smallint("attempts_used").notNull().default(0),
    leaseToken: uuid("lease_token"),
    deadLetterReason: text("dead_letter_reason"),
    createdAt: time("created_at")
      .notNull()
      .default(sql`clock_timestamp()`),
    dueAt: time("due_at").notNull(),
    leaseUntil: time("lease_until"),
    tryStartedAt: time("try_started_at"),
    endedAt: time("ended_at"),
  },
  (table) => [
    uniqueIndex("callback_deliveries_event_ordinal").on(table.eventId, table.ordinal),
    // at most one open delivery per event
    uniqueIndex("callback_deliveries_open")
      .on(table.eventId)
      .where(sql`ended_at is null`),
    // claimDeliveries: each endpoint's due deliveries
    index("callback_deliveries_claim")
      .on(table.endpointId, table.dueAt)
      .where(sql`state = 'PENDING'`),
    // claimDeliveries: an endpoint's deliveries in flight, against its max_concurrency
    index("callback_deliveries_leased")
      .on(table.endpointId)
      .where(sql`lease_token is not null`),
    // recoverDeliveries
    index("callback_deliveries_lease")
      .on(table.leaseUntil)
      .where(sql`lease_token is not null`),
    check("callback_deliveries_state", sql`${table.state} in ('PENDING', 'LEASED', 'DELIVERED', 'DEAD_LETTER')`),
    check("callback_deliveries_trigger", sql`${table.trigger} in ('FIRST', 'REPLAY')`),
    check("callback_deliveries_leased", sql`(${table.state} = 'LEASED') = (${table.leaseToken} is not null)`),
    check(
      "callback_deliveries_ended",
      sql`(${table.state} in ('DELIVERED', 'DEAD_LETTER')) = (${table.endedAt} is not null)`,
    ),
    check("callback_deliveries_budget", sql`${table.attemptsUsed} between 0 and ${table.attemptBudget}`),
  ],
);

/** One request to a receiver, inserted once when it ends. UNKNOWN: the worker died before its outcome was recorded. */
export const callbackTries = pgTable(
  "callback_tries",
  {
    id: uuid("id").primaryKey(),
    deliveryId: uuid("delivery_id")
      .notNull()
      .references(() => callbackDeliveries.id, { onDelete: "cascade" }),
    outcome: text("outcome").notNull(),
    ordinal: integer("ordinal").notNull(),
    leaseToken: uuid("lease_token").notNull(),
    httpStatus: integer("http_status"),
    failure: jsonb("failure"),
    latencyMs: integer("latency_ms"),
    startedAt: time("started_at").notNull(),
    endedAt: time("ended_at").notNull(),
  },
  (table) => [
    uniqueIndex("callback_tries_delivery_ordinal").on(table.deliveryId, table.ordinal),
    check("callback_tries_outcome", sql`${table.outcome} in ('SUCCEEDED', 'FAILED', 'UNKNOWN')`),
    check("callback_tries_failure", sql`(${table.outcome} = 'SUCCEEDED') = (${table.failure} is null)`),
  ],
);
