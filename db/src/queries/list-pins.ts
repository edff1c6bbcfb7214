import { type DetailedFailure, ok, type Page, type Pin, PinOwner, type Result } from "@keble-scraper/contract";
import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { artifactPins } from "../schema/artifact-pins.ts";
import { refusedCursor } from "./cursor.ts";

/** A page of an artifact's pins, released ones too, by owner. `afterOwner` is the last owner of the page before. */
export async function listPins(
  reads: PostgresJsDatabase,
  query: { readonly artifactId: string; readonly afterOwner: string | null; readonly limit: number },
): Promise<Page<Pin>> {
  const rows = await reads
    .select({
      artifactId: artifactPins.artifactId,
      owner: artifactPins.owner,
      retentionRevision: artifactPins.retentionRevision,
      expiresAt: sql<string | null>`rfc3339(${artifactPins.expiresAt})`,
      createdAt: sql<string>`rfc3339(${artifactPins.createdAt})`,
      updatedAt: sql<string>`rfc3339(${artifactPins.updatedAt})`,
    })
    .from(artifactPins)
    .where(
      and(
        eq(artifactPins.artifactId, query.artifactId),
        query.afterOwner === null ? undefined : gt(artifactPins.owner, query.afterOwner),
      ),
    )
    .orderBy(asc(artifactPins.owner))
    .limit(query.limit + 1);
  const items = rows.slice(0, query.limit);
  const last = items.at(-1);
  return {
    items,
    nextCursor: rows.length > query.limit && last !== undefined ? encodeOwnerCursor(last.owner) : null,
  };
}

function encodeOwnerCursor(owner: string): string {
  return Buffer.from(owner).toString("base64url");
}

/** The owner behind a cursor of `listPins`; null: from the start. One that is not ours is refused. */
export function readOwnerCursor(cursor: string | undefined): Result<string | null, DetailedFailure> {
  if (cursor === undefined) return ok(null);
  const owner = PinOwner.safeParse(Buffer.from(cursor, "base64url").toString());
  return owner.success && encodeOwnerCursor(owner.data) === cursor ? ok(owner.data) : refusedCursor();
}
