import type { CallbackEndpoint } from "@keble-scraper/contract";
import { and, eq, isNull } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { callbackEndpoints } from "../schema/callback-endpoints.ts";
import { toCallbackEndpoint } from "./callback-endpoint-row.ts";

/** One endpoint that is not deleted. `callerId` null reads any caller's; another caller's is not found. */
export async function findEndpoint(
  reads: PostgresJsDatabase,
  id: string,
  callerId: string | null,
): Promise<CallbackEndpoint | null> {
  const own = callerId === null ? undefined : eq(callbackEndpoints.callerId, callerId);
  const [row] = await reads
    .select()
    .from(callbackEndpoints)
    .where(and(eq(callbackEndpoints.id, id), isNull(callbackEndpoints.deletedAt), own))
    .limit(1);
  return row === undefined ? null : toCallbackEndpoint(row);
}
