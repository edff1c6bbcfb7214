import { z } from "zod";
import { ByteCount, HttpStatus, Id, Sha256 } from "./id.ts";
import { UrlText } from "./submit-job.ts";
import { Time } from "./time.ts";

/** Whether an artifact's bytes can be had. */
export const ARTIFACT_STATES = ["AVAILABLE", "DELETED"] as const;
export type ArtifactState = (typeof ARTIFACT_STATES)[number];

/** Why a download was asked for: by artifact, or as a job's content. Recorded in the audit row. */
export const DOWNLOAD_PURPOSES = ["ARTIFACT_DOWNLOAD", "JOB_CONTENT"] as const;
export type DownloadPurpose = (typeof DOWNLOAD_PURPOSES)[number];

/** Stored bytes of one caller. URL, status, type and time are those of the fetch that stored them first. */
export const Artifact = z.strictObject({
  id: Id,
  sha256: Sha256,
  sizeBytes: ByteCount,
  /** The declared media type; null: none was declared. */
  contentType: z.string().max(16_384).nullable(),
  sourceUrl: UrlText,
  finalUrl: UrlText,
  httpStatus: HttpStatus,
  fetchedAt: Time,
  createdAt: Time,
  state: z.enum(ARTIFACT_STATES),
});
export type Artifact = z.infer<typeof Artifact>;

/** A signed, audited way to an artifact's bytes. `url` carries `auditId` inside its signature. */
export const Download = z.strictObject({
  url: z.string().max(16_384),
  auditId: Id,
  expiresAt: Time,
  sha256: Sha256,
  sizeBytes: ByteCount,
});
export type Download = z.infer<typeof Download>;
