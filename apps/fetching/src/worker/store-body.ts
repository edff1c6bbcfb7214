import type { BinaryStore, SpooledBody } from "@keble-scraper/artifact-store";
import type { BytesPlace, StoredBytes } from "@keble-scraper/db/commands/fetching";

/** Where a body came from, as its artifact's row will say. `contentType` null: nobody said, and it looks like nothing. */
export type BodyOrigin = Pick<StoredBytes, "contentType" | "finalUrl" | "httpStatus">;

/** Makes bodies durable before the row that names them commits. */
export type StoreBody = {
  /** Puts the body, or skips it when bytes of its hash are AVAILABLE already. Durable once it resolves. */
  store(body: SpooledBody, origin: BodyOrigin): Promise<StoredBytes>;
  /** Puts the body whatever was seen: for a settle that found the seen bytes gone. */
  put(body: SpooledBody): Promise<BytesPlace>;
};

/** `findBlob` is asked for every body; the settle checks its answer under a lock. While it can't be asked, bodies are put. */
export function createStoreBody(options: {
  readonly store: BinaryStore;
  findBlob(sha256: string): Promise<string | null>;
  isOutage(error: unknown): boolean;
  /** A new UUID version 7. */
  createId(): string;
}): StoreBody {
  async function put(body: SpooledBody): Promise<BytesPlace> {
    // One id for both: a generation names one put, and so does its blob's row.
    const blobId = options.createId();
    await options.store.put(body, { sha256: body.sha256, generation: blobId });
    return { kind: "PUT", blobId, generation: blobId };
  }
  async function place(body: SpooledBody): Promise<BytesPlace> {
    const seen = await options.findBlob(body.sha256).catch((error: unknown) => {
      if (options.isOutage(error)) return null;
      throw error;
    });
    return seen === null ? put(body) : { kind: "SEEN", blobId: seen };
  }

  return {
    put,
    async store(body, { contentType, finalUrl, httpStatus }) {
      const { sha256, sizeBytes } = body;
      const artifactId = options.createId();
      return { ...(await place(body)), sha256, sizeBytes, artifactId, contentType, finalUrl, httpStatus };
    },
  };
}
