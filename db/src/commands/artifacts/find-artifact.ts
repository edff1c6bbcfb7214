import { type Artifact, type ArtifactState, formatTime } from "@keble-scraper/contract";
import { and, eq } from "drizzle-orm";
import type { PostgresJsDatabase } from "drizzle-orm/postgres-js";
import { artifacts } from "../../schema/artifacts.ts";
import { blobs } from "../../schema/blobs.ts";

/** Where an artifact's bytes are in the store: `<sha256>/<generation>` below the prefix. */
export type StoredObject = { readonly sha256: string; readonly generation: string; readonly sizeBytes: number };

/** An artifact with the object that holds its bytes; `object` is null once it is deleted. */
export type FoundArtifact = { readonly artifact: Artifact; readonly object: StoredObject | null };

/** One artifact. `callerId` null reads any caller's (an operator); another caller's artifact is not found. */
export async function findArtifact(
  reads: PostgresJsDatabase,
  id: string,
  callerId: string | null,
): Promise<FoundArtifact | null> {
  const own = callerId === null ? undefined : eq(artifacts.callerId, callerId);
  const [row] = await reads
    .select({ artifact: artifacts, blob: blobs })
    .from(artifacts)
    .leftJoin(blobs, and(eq(blobs.id, artifacts.blobId), eq(blobs.state, "AVAILABLE")))
    .where(and(eq(artifacts.id, id), own))
    .limit(1);
  if (row === undefined) return null;
  const { artifact, blob } = row;
  const sha256 = artifact.sha256.toString("hex");
  const isStored = artifact.state === "AVAILABLE" && blob !== null;
  return {
    artifact: {
      id: artifact.id,
      sha256,
      sizeBytes: artifact.sizeBytes,
      contentType: artifact.contentType,
      sourceUrl: artifact.sourceUrl,
      finalUrl: artifact.finalUrl,
      httpStatus: artifact.httpStatus,
      fetchedAt: formatTime(artifact.fetchedAt),
      createdAt: formatTime(artifact.createdAt),
      state: artifact.state as ArtifactState,
    },
    object: isStored ? { sha256, generation: blob.generation, sizeBytes: blob.sizeBytes } : null,
  };
}
