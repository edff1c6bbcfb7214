import { z } from "zod";
import { DELIVERY_STATES, EVENT_STATES, EVENT_TYPES } from "./callback-sets.ts";
import { Failure } from "./failure.ts";
import { HttpStatus, Id, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Time } from "./time.ts";

/** One POST to a receiver. A 2xx has no failure. */
export const CallbackTry = z.strictObject({
  ordinal: z.int().min(1),
  startedAt: Time,
  finishedAt: Time,
  httpStatus: HttpStatus.nullable(),
  failure: Failure.nullable(),
  totalMs: z.int().min(0),
});
export type CallbackTry = z.infer<typeof CallbackTry>;

/** One delivery of an event, with a budget of its own. The first is made with the event, each accepted replay adds one. */
export const CallbackDelivery = z.strictObject({
  id: Id,
  ordinal: z.int().min(1),
  state: z.enum(DELIVERY_STATES),
  attemptBudget: z.int().min(1),
  attemptsUsed: z.int().min(0),
  /** When the next try is due; null once it is not open any more. */
  dueAt: Time.nullable(),
  createdAt: Time,
  finishedAt: Time.nullable(),
  /** Why it ended without being delivered. */
  failure: Failure.nullable(),
  tries: z.array(CallbackTry).max(100),
});
export type CallbackDelivery = z.infer<typeof CallbackDelivery>;

/** An event as a list shows it. `id` is the `webhook-id` of every try and replay. `endpointId` null: it was deleted. */
export const CallbackEvent = z.strictObject({
  id: Id,
  callerId: Name,
  jobId: Id,
  endpointId: Id.nullable(),
  endpoint: Name,
  type: z.enum(EVENT_TYPES),
  state: z.enum(EVENT_STATES),
  /** The job's `finishedAt`. */
  occurredAt: Time,
  /** When it came into a state it rests in (DELIVERED, DEAD_LETTER, DISCARDED, NOT_WANTED); null while it is open. */
  settledAt: Time.nullable(),
  /** Why it is a DEAD_LETTER. */
  failure: Failure.nullable(),
});
export type CallbackEvent = z.infer<typeof CallbackEvent>;

/** An event with its deliveries, oldest first; at most the last 100. */
export const CallbackEventDetail = CallbackEvent.extend({ deliveries: z.array(CallbackDelivery).max(100) });
export type CallbackEventDetail = z.infer<typeof CallbackEventDetail>;

/** What a list of events is narrowed by. */
export const CallbackEventQuery = PageQuery.extend({
  state: z.enum(EVENT_STATES).optional(),
  endpointId: Id.optional(),
});
export type CallbackEventQuery = z.infer<typeof CallbackEventQuery>;

/** A page of events, newest first. */
export const CallbackEventPage = pageOf(CallbackEvent);
export type CallbackEventPage = z.infer<typeof CallbackEventPage>;
