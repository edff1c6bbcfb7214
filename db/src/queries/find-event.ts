import {
  type CallbackDelivery,
  type CallbackEventDetail,
  type CallbackTry,
  DELIVERIES_SHOWN_MAX,
  formatTime,
} from "@keble-scraper/contract";
import { and, asc, desc, eq, inArray } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackDeliveries, callbackEvents, callbackTries } from "../schema/callback-events.ts";
import { selectEventRows, toCallbackEvent } from "./callback-event-row.ts";

/** One event with its newest deliveries and their tries, oldest first, as of one moment. `callerId` null: any caller's. */
export async function findEvent(
  reads: PostgresJsDatabase,
  id: string,
  callerId: string | null,
): Promise<CallbackEventDetail | null> {
  const own = callerId === null ? undefined : eq(callbackEvents.callerId, callerId);
  return reads.transaction(
    async (tx) => {
      const [event] = await selectEventRows(tx)
        .where(and(eq(callbackEvents.id, id), own))
        .limit(1);
      if (event === undefined) return null;
      const deliveries = await tx
        .select()
        .from(callbackDeliveries)
        .where(eq(callbackDeliveries.eventId, id))
        .orderBy(desc(callbackDeliveries.ordinal))
        .limit(DELIVERIES_SHOWN_MAX);
      // A delivery has at most as many tries as its budget, which the contract keeps far under what is shown.
      const tries = await tx
        .select()
        .from(callbackTries)
        .where(
          inArray(
            callbackTries.deliveryId,
            deliveries.map((row) => row.id),
          ),
        )
        .orderBy(asc(callbackTries.ordinal));
      const shown = deliveries.toReversed().map((row) =>
        toDelivery(
          row,
          tries.filter((entry) => entry.deliveryId === row.id),
        ),
      );
      return { ...toCallbackEvent(event), deliveries: shown };
    },
    { isolationLevel: "repeatable read", accessMode: "read only" },
  );
}

type DeliveryRow = typeof callbackDeliveries.$inferSelect;
type TryRow = typeof callbackTries.$inferSelect;

function toDelivery(row: DeliveryRow, tries: readonly TryRow[]): CallbackDelivery {
  return {
    id: row.id,
    ordinal: row.ordinal,
    trigger: row.trigger as CallbackDelivery["trigger"],
    state: row.state as CallbackDelivery["state"],
    deadLetterReason: row.deadLetterReason as CallbackDelivery["deadLetterReason"],
    attemptBudget: row.attemptBudget,
    attemptsUsed: row.attemptsUsed,
    createdAt: formatTime(row.createdAt),
    dueAt: formatTime(row.dueAt),
    finishedAt: row.endedAt === null ? null : formatTime(row.endedAt),
    tries: tries.map(toTry),
  };
}

function toTry(row: TryRow): CallbackTry {
  return {
    ordinal: row.ordinal,
    outcome: row.outcome as CallbackTry["outcome"],
    httpStatus: row.httpStatus,
    failure: row.failure as CallbackTry["failure"],
    latencyMs: row.latencyMs,
    startedAt: formatTime(row.startedAt),
    finishedAt: formatTime(row.endedAt),
  };
}
