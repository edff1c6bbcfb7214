import { z } from "zod";
import {
  DEAD_LETTER_REASONS,
  DELIVERY_STATES,
  DELIVERY_TRIGGERS,
  EVENT_STATES,
  EVENT_TYPES,
  TRY_OUTCOMES,
} from "./callback-sets.ts";
import { Failure } from "./failure.ts";
import { HttpStatus, Id, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Time } from "./time.ts";

/** The most deliveries an event shows, and the most tries a delivery shows: the newest ones. */
export const DELIVERIES_SHOWN_MAX = 100;

/** One POST to a receiver, written once when it ends. Only SUCCEEDED has no failure. */
export const CallbackTry = z.strictObject({
  ordinal: z.int().min(1),
  outcome: z.enum(TRY_OUTCOMES),
  httpStatus: HttpStatus.nullable(),
  failure: Failure.nullable(),
  /** From sending to the answer's head; null: none came. */
  latencyMs: z.int().min(0).nullable(),
  startedAt: Time,
  finishedAt: Time,
});
export type CallbackTry = z.infer<typeof CallbackTry>;

/** One delivery of an event, with a budget of its own. The first is made with the event, each accepted replay adds one. */
export const CallbackDelivery = z.strictObject({
  id: Id,
  ordinal: z.int().min(1),
  trigger: z.enum(DELIVERY_TRIGGERS),
  state: z.enum(DELIVERY_STATES),
  deadLetterReason: z.enum(DEAD_LETTER_REASONS).nullable(),
  attemptBudget: z.int().min(1),
  attemptsUsed: z.int().min(0),
  createdAt: Time,
  /** When the next try is due; once it is over, when the last one was. */
  dueAt: Time,
  /** Null: it is open. */
  finishedAt: Time.nullable(),
  /** Oldest first. */
  tries: z.array(CallbackTry).max(DELIVERIES_SHOWN_MAX),
});
export type CallbackDelivery = z.infer<typeof CallbackDelivery>;

/** An event as a list shows it. `id` is the `webhook-id` of every try and replay. */
export const CallbackEvent = z.strictObject({
  id: Id,
  callerId: Name,
  jobId: Id,
  endpointId: Id,
  /** The endpoint's name, also after its deletion. */
  endpoint: Name,
  type: z.enum(EVENT_TYPES),
  state: z.enum(EVENT_STATES),
  deadLetterReason: z.enum(DEAD_LETTER_REASONS).nullable(),
  /** The job's `finishedAt`. */
  occurredAt: Time,
  createdAt: Time,
  /** When it was delivered, dead-lettered or discarded; null: it is open. */
  finishedAt: Time.nullable(),
});
export type CallbackEvent = z.infer<typeof CallbackEvent>;

/** An event with its deliveries, oldest first. */
export const CallbackEventDetail = CallbackEvent.extend({
  deliveries: z.array(CallbackDelivery).max(DELIVERIES_SHOWN_MAX),
});
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
