import { z } from "zod";
import { Artifact, DOWNLOAD_PURPOSES, Download } from "../artifact.ts";
import { Id } from "../id.ts";
import { Principal } from "../principal.ts";
import { resultOf } from "./result-of.ts";

/** artifacts.getArtifact: another caller's artifact is NOT_FOUND; a deleted one is an answer. */
export const GetArtifactCall = z.strictObject({ principal: Principal, id: Id });
export type GetArtifactCall = z.infer<typeof GetArtifactCall>;
export const GetArtifactAnswer = resultOf(Artifact);
export type GetArtifactAnswer = z.infer<typeof GetArtifactAnswer>;

/** artifacts.createDownload: audited under the principal and `requestId`. GONE when the bytes are deleted or missing. */
export const CreateDownloadCall = z.strictObject({
  principal: Principal,
  artifactId: Id,
  requestId: z.string().min(1).max(128),
  purpose: z.enum(DOWNLOAD_PURPOSES),
});
export type CreateDownloadCall = z.infer<typeof CreateDownloadCall>;
export const CreateDownloadAnswer = resultOf(Download);
export type CreateDownloadAnswer = z.infer<typeof CreateDownloadAnswer>;
