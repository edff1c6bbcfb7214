/** What a callback tells: the job's terminal state. */
export const EVENT_TYPES = ["job.succeeded", "job.failed", "job.cancelled"] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/**
 * The state of an event. NOT_WANTED: the endpoint's filter excludes its type. A DELIVERED event stays DELIVERED; a
 * replayed DEAD_LETTER is PENDING again.
 */
export const EVENT_STATES = ["PENDING", "LEASED", "DELIVERED", "DEAD_LETTER", "DISCARDED", "NOT_WANTED"] as const;
export type EventState = (typeof EVENT_STATES)[number];

/** The state of one delivery of an event. PENDING and LEASED are open; an event has at most one open delivery. */
export const DELIVERY_STATES = ["PENDING", "LEASED", "DELIVERED", "DEAD_LETTER"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Why there is a delivery: the job ended, or somebody asked for a replay. */
export const DELIVERY_TRIGGERS = ["FIRST", "REPLAY"] as const;
export type DeliveryTrigger = (typeof DELIVERY_TRIGGERS)[number];

/** Why nothing more is tried. TARGET_FORBIDDEN: the receiver's address may not be reached. */
export const DEAD_LETTER_REASONS = [
  "BUDGET_SPENT",
  "ENDPOINT_DISABLED",
  "ENDPOINT_DELETED",
  "TARGET_FORBIDDEN",
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

/** How a try ended. UNKNOWN: its worker was lost before the answer was recorded; the receiver may have had it. */
export const TRY_OUTCOMES = ["SUCCEEDED", "FAILED", "UNKNOWN"] as const;
export type TryOutcome = (typeof TRY_OUTCOMES)[number];

/** Who or what disabled an endpoint. GONE: the receiver answered 410. */
export const DISABLED_REASONS = ["OPERATOR", "CALLER", "GONE"] as const;
export type DisabledReason = (typeof DISABLED_REASONS)[number];
