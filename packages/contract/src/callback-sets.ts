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
export const DELIVERY_STATES = ["PENDING", "LEASED", "DELIVERED", "DEAD_LETTER", "DISCARDED"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];
