import type { CallbackEvent, EventState, Page } from "@keble-scraper/contract";
import { and, desc, eq, lt } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackEvents } from "../schema/callback-events.ts";
import { selectEventRows, toCallbackEvent } from "./callback-event-row.ts";
import { encodeCursor } from "./cursor.ts";

type Filter = {
  /** Null reads every caller's events. */
  readonly callerId: string | null;
  readonly state: EventState | null;
  readonly endpointId: string | null;
  /** The last id of the page before. */
  readonly afterId: string | null;
  readonly limit: number;
};

/** A page of events, newest first. An event that was not wanted has no row, so NOT_WANTED finds none. */
export async function listEvents(reads: PostgresJsDatabase, filter: Filter): Promise<Page<CallbackEvent>> {
  const rows = await selectEventRows(reads)
    .where(
      and(
        filter.callerId === null ? undefined : eq(callbackEvents.callerId, filter.callerId),
        filter.state === null ? undefined : eq(callbackEvents.state, filter.state),
        filter.endpointId === null ? undefined : eq(callbackEvents.endpointId, filter.endpointId),
        filter.afterId === null ? undefined : lt(callbackEvents.id, filter.afterId),
      ),
    )
    .orderBy(desc(callbackEvents.id))
    .limit(filter.limit + 1);
  const items = rows.slice(0, filter.limit).map(toCallbackEvent);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > filter.limit && last !== undefined ? encodeCursor(last.id) : null };
}
