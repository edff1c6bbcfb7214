import { createHash, randomUUID } from "node:crypto";
import { readKeptHeaders } from "./kept-headers.ts";
import { quoteEtag } from "./object-operations.ts";
import type { Piece } from "./piece-keeper.ts";
import { PART_NUMBER_MAX, readPartList } from "./read-part-list.ts";
import { readTextBody } from "./read-text-body.ts";
import { compositeEtag, receiveBody } from "./receive-body.ts";
import { element, emptyAnswer, type S3Answer, xmlAnswer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf } from "./s3-request.ts";
import { readPieces } from "./send-answer.ts";
import type { Upload } from "./upload-table.ts";
import { checkAbsence } from "./write-conditions.ts";

/** Begins an upload, which keeps metadata and headers for the object to come. */
export async function createUpload(context: S3Context, call: S3Call): Promise<S3Result<S3Answer>> {
  const kept = readKeptHeaders(call.request);
  if (!kept.ok) return kept;
  const body = await readTextBody(call);
  if (!body.ok) return body;
  const { key } = call.request;
  const uploadId = randomUUID().replaceAll("-", "");
  context.uploads.put({ uploadId, key, ...kept.value, initiatedAtMs: context.nowMs(), parts: new Map() });
  const content = element("Bucket", context.bucket) + element("Key", key) + element("UploadId", uploadId);
  return accept(xmlAnswer("InitiateMultipartUploadResult", content));
}

/** Takes one part in; a part of the same number is replaced. */
export async function uploadPart(context: S3Context, call: S3Call): Promise<S3Result<S3Answer>> {
  const { request } = call;
  const partNumber = parameterOf(request, "partNumber") ?? "";
  if (!/^\d{1,5}$/.test(partNumber) || Number(partNumber) < 1 || Number(partNumber) > PART_NUMBER_MAX) {
    return refuse("InvalidArgument", { message: `Part number must be an integer between 1 and ${PART_NUMBER_MAX}.` });
  }
  const before = findUpload(context, call);
  if (!before.ok) return before;
  const received = await receiveBody(request, call.payloadHash, call.body, context.keeper);
  if (!received.ok) return received;
  // The upload may have been aborted while the part came in.
  const upload = findUpload(context, call);
  if (!upload.ok) {
    await received.value.remove();
    return upload;
  }
  void upload.value.parts.get(Number(partNumber))?.remove();
  upload.value.parts.set(Number(partNumber), received.value);
  return accept(emptyAnswer(200, { etag: quoteEtag(context, received.value.md5) }));
}

/** Makes an object of the listed parts. A refused completion leaves the upload as it was. */
export async function completeUpload(context: S3Context, call: S3Call): Promise<S3Result<S3Answer>> {
  const body = await readTextBody(call);
  if (!body.ok) return body;
  const found = findUpload(context, call);
  if (!found.ok) return found;
  const upload = found.value;
  const chosen = choosePieces(upload, body.value, context.partBytesMin);
  if (!chosen.ok) return chosen;
  const absent = checkAbsence(context, call.request);
  if (!absent.ok) return absent;
  // From here on nobody else completes, aborts or adds to it.
  context.uploads.take(upload.uploadId);
  const pieces = chosen.value;
  const sizeBytes = pieces.reduce((sum, piece) => sum + piece.sizeBytes, 0);
  const sha256 = createHash("sha256");
  for await (const chunk of readPieces(pieces, 0, sizeBytes - 1)) sha256.update(chunk);
  const stillAbsent = checkAbsence(context, call.request);
  if (!stillAbsent.ok) {
    context.uploads.put(upload);
    return stillAbsent;
  }
  const { key, metadata, headers } = upload;
  const etag = compositeEtag(pieces);
  const object = { key, pieces, sizeBytes, sha256: sha256.digest("hex"), etag, metadata, headers };
  context.objects.put({ ...object, storedAtMs: context.nowMs() });
  for (const piece of upload.parts.values()) if (!pieces.includes(piece)) void piece.remove();
  const content = [
    element("Location", `http://${call.request.host}${call.request.path}`),
    element("Bucket", context.bucket),
    element("Key", key),
    element("ETag", quoteEtag(context, etag)),
  ];
  return accept(xmlAnswer("CompleteMultipartUploadResult", content.join("")));
}

/** Forgets an upload and its parts. */
export function abortUpload(context: S3Context, call: S3Call): S3Result<S3Answer> {
  const upload = findUpload(context, call);
  if (!upload.ok) return upload;
  context.uploads.take(upload.value.uploadId);
  for (const piece of upload.value.parts.values()) void piece.remove();
  return accept(emptyAnswer(204));
}

function findUpload({ uploads }: S3Context, { request }: S3Call): S3Result<Upload> {
  const uploadId = parameterOf(request, "uploadId") ?? "";
  const upload = uploads.get(uploadId, request.key);
  return upload === undefined ? refuse("NoSuchUpload", { details: { UploadId: uploadId } }) : accept(upload);
}

function choosePieces(upload: Upload, document: string, partBytesMin: number): S3Result<readonly Piece[]> {
  const listed = readPartList(document);
  if (!listed.ok) return listed;
  const pieces: Piece[] = [];
  for (const { partNumber, etag } of listed.value) {
    const piece = upload.parts.get(partNumber);
    if (piece === undefined || piece.md5 !== etag) {
      return refuse("InvalidPart", { details: { PartNumber: String(partNumber), ETag: etag } });
    }
    pieces.push(piece);
  }
  const small = pieces.findIndex(({ sizeBytes }, i) => i < pieces.length - 1 && sizeBytes < partBytesMin);
  if (small === -1) return accept(pieces);
  return refuse("EntityTooSmall", {
    details: {
      ProposedSize: String(pieces[small]?.sizeBytes ?? 0),
      MinSizeAllowed: String(partBytesMin),
      PartNumber: String(listed.value[small]?.partNumber ?? 0),
    },
  });
}
