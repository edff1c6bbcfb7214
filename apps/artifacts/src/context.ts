import type { BinaryKey, BinaryStore } from "@keble-scraper/artifact-store";
import type { Database } from "@keble-scraper/db";
import type { Clock } from "@keble-scraper/service";
import { createProcedures } from "@keble-scraper/service";

/**
 * What a link is to say. It holds until `expiresAtMs` (Unix milliseconds), a whole second: a link of S3 can carry no finer time.
 * `contentType` and `disposition` are the headers that its answer will have.
 */
export type DownloadRequest = {
  readonly key: BinaryKey;
  readonly auditId: string;
  readonly expiresAtMs: number;
  readonly contentType: string;
  readonly disposition: string;
};

/** Makes a signed link in memory: no request, nothing kept. The audit id is part of what is signed. */
export type SignDownload = (request: DownloadRequest) => Promise<string>;

/** What a procedure may use. */
export type ArtifactsContext = {
  readonly database: Pick<Database, "commands" | "reads">;
  readonly store: Pick<BinaryStore, "head">;
  readonly signDownload: SignDownload;
  readonly downloadUrlMs: number;
  /** How long the audit row of a download is kept, and what was found wrong with the store. */
  readonly auditDays: number;
  readonly clock: Clock;
};

export const { router, procedure } = createProcedures<ArtifactsContext>();
