import { type CallbackEvent, formatTime } from "@keble-scraper/contract";
import { eq } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackEndpoints } from "../schema/callback-endpoints.ts";
import { callbackEvents } from "../schema/callback-events.ts";

/** The select that every read of events starts from: an event with its endpoint's name, deleted or not. */
export function selectEventRows(reads: PostgresJsDatabase) {
  return reads
    .select({
      id: callbackEvents.id,
      callerId: callbackEvents.callerId,
      jobId: callbackEvents.jobId,
      endpointId: callbackEvents.endpointId,
      endpoint: callbackEndpoints.name,
      type: callbackEvents.type,
      state: callbackEvents.state,
      deadLetterReason: callbackEvents.deadLetterReason,
      occurredAt: callbackEvents.occurredAt,
      createdAt: callbackEvents.createdAt,
      endedAt: callbackEvents.endedAt,
    })
    .from(callbackEvents)
    .innerJoin(callbackEndpoints, eq(callbackEndpoints.id, callbackEvents.endpointId));
}

type CallbackEventRow = Awaited<ReturnType<typeof selectEventRows>>[number];

/** An event as a list shows it. */
export function toCallbackEvent(row: CallbackEventRow): CallbackEvent {
  return {
    id: row.id,
    callerId: row.callerId,
    jobId: row.jobId,
    endpointId: row.endpointId,
    endpoint: row.endpoint,
    type: row.type as CallbackEvent["type"],
    state: row.state as CallbackEvent["state"],
    deadLetterReason: row.deadLetterReason as CallbackEvent["deadLetterReason"],
    occurredAt: formatTime(row.occurredAt),
    createdAt: formatTime(row.createdAt),
    finishedAt: row.endedAt === null ? null : formatTime(row.endedAt),
  };
}
