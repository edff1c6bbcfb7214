import { type Page, type Pin, PinOwner } from "@keble-scraper/contract";
import { and, asc, eq, gt, sql } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { artifactPins } from "../schema/artifact-pins.ts";

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

/** The owner in a cursor of `listPins`; null when the text is none of ours. */
export function parseOwnerCursor(cursor: string): string | null {
  const owner = PinOwner.safeParse(Buffer.from(cursor, "base64url").toString());
  return owner.success && encodeOwnerCursor(owner.data) === cursor ? owner.data : null;
}
