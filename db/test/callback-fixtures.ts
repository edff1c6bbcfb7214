import { upstreamFailure } from "@keble-scraper/contract";
import { v7 as uuidv7 } from "uuid";
import {
  claimDeliveries,
  type DeliveryLease,
  type NewEndpoint,
  registerEndpoint,
  type TryReport,
} from "../src/commands/callbacks/index.ts";
import { cancelJob } from "../src/commands/intake/index.ts";
import type { Database } from "../src/database.ts";
import { OPTIONS, submitOne } from "./job-fixtures.ts";

/** Who acts in the tests. */
export const BY = { actor: "system:test", requestId: "req-1" };
/** The default clocks of a delivered event. */
export const CLOCKS = { eventRetentionMs: 30 * 86_400_000, jobRetentionMs: 90 * 86_400_000 };

/** An endpoint that takes 100 at once and has a budget of 3. */
export function newEndpoint(overrides: Partial<NewEndpoint> = {}): NewEndpoint {
  const id = uuidv7();
  return {
    id,
    callerId: "acme",
    name: `orders-${id}`,
    url: "https://hooks.example.com/in?token=s3cr3t",
    events: null,
    attemptBudget: 3,
    timeoutMs: 15_000,
    maxConcurrency: 100,
    secret: { keyId: "0a1b2c3d", ciphertext: Buffer.from("sealed") },
    ...overrides,
  };
}

/** Registers an endpoint. */
export async function registerOne(database: Database, overrides: Partial<NewEndpoint> = {}): Promise<NewEndpoint> {
  const endpoint = newEndpoint(overrides);
  const answer = await registerEndpoint(database.commands, endpoint, BY);
  if (!answer.ok) throw new Error(`not registered: ${answer.failure.code}`);
  return endpoint;
}

/** A job that ended (cancelled) with an event for the endpoint. */
export async function endJob(database: Database, endpoint: NewEndpoint): Promise<{ jobId: string; eventId: string }> {
  const jobId = await submitOne(database, { callbackEndpoint: endpoint.name }, endpoint.callerId);
  const ended = await cancelJob(database.commands, { id: jobId, callerId: null }, OPTIONS);
  if (ended?.eventId == null) throw new Error("no event");
  return { jobId, eventId: ended.eventId };
}

/** So many of them. */
export async function endJobs(database: Database, endpoint: NewEndpoint, count: number): Promise<void> {
  for (let made = 0; made < count; made += 1) await endJob(database, endpoint);
}

/** Claims up to `slots` from the start of the ring. */
export async function claim(database: Database, slots = 50, leaseSeconds = 60): Promise<readonly DeliveryLease[]> {
  const batch = await claimDeliveries(database.commands, { slots, leaseSeconds, afterEndpointId: null });
  return batch.leases;
}

/** Claims exactly one delivery. */
export async function claimOne(database: Database, leaseSeconds = 60): Promise<DeliveryLease> {
  const [lease] = await claim(database, 1, leaseSeconds);
  if (lease === undefined) throw new Error("nothing to claim");
  return lease;
}

/** A try that was answered 200. */
export function delivered(lease: DeliveryLease, overrides: Partial<TryReport> = {}): TryReport {
  return {
    id: lease.id,
    token: lease.token,
    tryId: uuidv7(),
    outcome: "SUCCEEDED",
    httpStatus: 200,
    failure: null,
    latencyMs: 12,
    url: lease.url,
    next: "RETRY",
    backoffMs: 0,
    retryAfterMs: null,
    ...overrides,
  };
}

/** A try that was answered 500, to be tried again at once. */
export function refused(lease: DeliveryLease, overrides: Partial<TryReport> = {}): TryReport {
  return delivered(lease, {
    outcome: "FAILED",
    httpStatus: 500,
    failure: upstreamFailure("HTTP_SERVER_ERROR", { httpStatus: 500 }),
    ...overrides,
  });
}

/** A try that was answered 410. */
export function gone(lease: DeliveryLease): TryReport {
  const failure = upstreamFailure("HTTP_CLIENT_ERROR", { httpStatus: 410 });
  return refused(lease, { httpStatus: 410, failure, next: "GONE" });
}

/** Delivery, event, tries and job as they are stored. */
export async function readDelivery(database: Database, deliveryId: string) {
  const [row] = await database.commands<
    {
      state: string;
      dead_letter_reason: string | null;
      attempts_used: number;
      lease_token: string | null;
      due_in_ms: number;
      event_state: string;
      event_reason: string | null;
      payload: string | null;
      event_expires_in_ms: number | null;
      job_expires_in_ms: number | null;
      job_status: string;
      tries: { outcome: string; ordinal: number; code: string | null; retryAt: string | null; token: string }[];
    }[]
  >`
    select d.state, d.dead_letter_reason, d.attempts_used, d.lease_token,
      extract(epoch from d.due_at - clock_timestamp())::float8 * 1000 as due_in_ms,
      e.state as event_state, e.dead_letter_reason as event_reason, e.payload,
      extract(epoch from e.expires_at - clock_timestamp())::float8 * 1000 as event_expires_in_ms,
      extract(epoch from j.expires_at - clock_timestamp())::float8 * 1000 as job_expires_in_ms, j.status as job_status,
      coalesce((select jsonb_agg(jsonb_build_object('outcome', t.outcome, 'ordinal', t.ordinal, 'code', t.failure ->> 'code',
                  'retryAt', t.failure ->> 'retryAt', 'token', t.lease_token) order by t.ordinal)
                from callback_tries t where t.delivery_id = d.id), '[]') as tries
    from callback_deliveries d join callback_events e on e.id = d.event_id join jobs j on j.id = e.job_id
    where d.id = ${deliveryId}`;
  if (row === undefined) throw new Error("no such delivery");
  return row;
}

/** The delivery of an event that a job made. */
export async function deliveryOf(database: Database, eventId: string): Promise<string> {
  const [row] = await database.commands<{ id: string }[]>`
    select id from callback_deliveries where event_id = ${eventId} order by ordinal desc limit 1`;
  if (row === undefined) throw new Error("no delivery");
  return row.id;
}

/** Makes a lease expire. */
export async function expireLease(database: Database, deliveryId: string): Promise<void> {
  await database.commands`
    update callback_deliveries set lease_until = clock_timestamp() - interval '1 ms'
    where id = ${deliveryId} and lease_token is not null`;
}

/** Makes everything that waits due. */
export async function makeDue(database: Database): Promise<void> {
  await database.commands`update callback_deliveries set due_at = clock_timestamp() - interval '1 ms' where state = 'PENDING'`;
}

/** A second delivery of an event that was delivered, as a replay makes it. */
export async function replayRow(database: Database, eventId: string): Promise<string> {
  const id = uuidv7();
  await database.commands`
    insert into callback_deliveries (id, event_id, endpoint_id, trigger, ordinal, attempt_budget, due_at)
    select ${id}, e.id, e.endpoint_id, 'REPLAY', 2, 3, clock_timestamp() - interval '1 ms' from callback_events e where e.id = ${eventId}`;
  return id;
}
