import {
  type CallbackEndpoint,
  type DisabledReason,
  EVENT_TYPES,
  type EventType,
  formatTime,
} from "@keble-scraper/contract";

/** What a read of an endpoint needs of its row. */
export type CallbackEndpointRow = {
  readonly id: string;
  readonly callerId: string;
  readonly name: string;
  readonly url: string;
  readonly events: readonly string[] | null;
  readonly attemptBudget: number;
  readonly timeoutMs: number;
  readonly maxConcurrency: number;
  readonly disabledReason: string | null;
  readonly createdAt: Date;
};

/** An endpoint as it is read. A rate of its own is not a part of this release. */
export function toCallbackEndpoint(row: CallbackEndpointRow): CallbackEndpoint {
  return {
    id: row.id,
    callerId: row.callerId,
    name: row.name,
    url: row.url,
    enabled: row.disabledReason === null,
    disabledReason: row.disabledReason as DisabledReason | null,
    events: [...((row.events as readonly EventType[] | null) ?? EVENT_TYPES)],
    attemptBudget: row.attemptBudget,
    timeoutMs: row.timeoutMs,
    maxConcurrency: row.maxConcurrency,
    ratePerSecond: null,
    createdAt: formatTime(row.createdAt),
  };
}
