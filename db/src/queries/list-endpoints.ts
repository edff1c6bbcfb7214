import type { CallbackEndpoint, Page } from "@keble-scraper/contract";
import { and, desc, eq, isNull, lt } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackEndpoints } from "../schema/callback-endpoints.ts";
import { toCallbackEndpoint } from "./callback-endpoint-row.ts";
import { encodeCursor } from "./cursor.ts";

type Filter = {
  /** Null reads every caller's endpoints. */
  readonly callerId: string | null;
  readonly name: string | null;
  /** The last id of the page before. */
  readonly afterId: string | null;
  readonly limit: number;
};

/** A page of endpoints that are not deleted, newest first. */
export async function listEndpoints(reads: PostgresJsDatabase, filter: Filter): Promise<Page<CallbackEndpoint>> {
  const rows = await reads
    .select()
    .from(callbackEndpoints)
    .where(
      and(
        isNull(callbackEndpoints.deletedAt),
        filter.callerId === null ? undefined : eq(callbackEndpoints.callerId, filter.callerId),
        filter.name === null ? undefined : eq(callbackEndpoints.name, filter.name),
        filter.afterId === null ? undefined : lt(callbackEndpoints.id, filter.afterId),
      ),
    )
    .orderBy(desc(callbackEndpoints.id))
    .limit(filter.limit + 1);
  const items = rows.slice(0, filter.limit).map(toCallbackEndpoint);
  const last = items.at(-1);
  return { items, nextCursor: rows.length > filter.limit && last !== undefined ? encodeCursor(last.id) : null };
}
