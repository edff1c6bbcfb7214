import { z } from "zod";
import { Artifact, DOWNLOAD_PURPOSES, Download } from "../artifact.ts";
import { Id } from "../id.ts";
import { Principal } from "../principal.ts";
import { PinOwner, PinPage, PinQuery, PutPin, PutPinResult } from "../pin.ts";
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

/** artifacts.putPin: audited when it applies. GONE when the bytes are deleted; CONFLICT for a revision with another expiry. */
export const PutPinCall = z.strictObject({
  principal: Principal,
  artifactId: Id,
  owner: PinOwner,
  pin: PutPin,
  requestId: z.string().min(1).max(128),
});
export type PutPinCall = z.infer<typeof PutPinCall>;
export const PutPinAnswer = resultOf(PutPinResult);
export type PutPinAnswer = z.infer<typeof PutPinAnswer>;

/** artifacts.listPins: another caller's artifact is NOT_FOUND; a deleted one's pins are an answer. */
export const ListPinsCall = z.strictObject({ principal: Principal, artifactId: Id, query: PinQuery });
export type ListPinsCall = z.infer<typeof ListPinsCall>;
export const ListPinsAnswer = resultOf(PinPage);
export type ListPinsAnswer = z.infer<typeof ListPinsAnswer>;
