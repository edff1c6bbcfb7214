import type { SpooledBody } from "../spooled-body.ts";
import { StoreUnavailable } from "../store-unavailable.ts";
import { objectHeaders } from "./object-headers.ts";
import type { S3Client } from "./s3-client.ts";
import { forbidOverwrite, type S3Context } from "./s3-context.ts";
import { hashParts, openVerified, type Stretch } from "./verified-stream.ts";

/** S3's own limit. */
const PARTS_MAX = 10_000;
/** Parts of one body on their way at once: hides the wait for an answer, and holds 1 MiB of memory at most. */
const LANES = 2;

/** One upload that was begun and is neither completed nor aborted. */
type Upload = { readonly Bucket: string; readonly Key: string; readonly UploadId: string };
type Part = { readonly PartNumber: number; readonly ETag: string };

/**
 * Stores a long body in parts, read from the spool file as they are sent; what is in memory does not grow with the
 * body. Nothing is there under the name until the last step. When anything fails the upload is aborted, and the error
 * thrown is the one that failed, never the abort's; an upload that could not be aborted is a stray for `removeStrays`.
 */
export async function putInParts(
  context: S3Context,
  body: SpooledBody,
  { name, mayReplace }: { readonly name: string; readonly mayReplace: boolean },
): Promise<void> {
  const { settings, tuning } = context;
  const s3 = context.client();
  const partBytes = Math.max(tuning.partBytesMin, Math.ceil(body.sizeBytes / PARTS_MAX));
  const stretches = await hashParts(body, partBytes);
  const upload = await begin(s3, { Bucket: settings.bucket, Key: name }, body.sha256);
  try {
    const parts = await sendParts(s3, upload, body, stretches);
    const command = new s3.sdk.CompleteMultipartUploadCommand({ ...upload, MultipartUpload: { Parts: parts } });
    if (!mayReplace) forbidOverwrite(settings, command);
    await s3.call(async (sdk, options) => sdk.send(command, options));
  } catch (error) {
    await abortUpload(s3, upload).catch(() => undefined);
    throw error;
  }
}

/** Drops an upload with its parts. One that is gone is no error. */
export async function abortUpload(s3: S3Client, upload: Upload): Promise<void> {
  const command = new s3.sdk.AbortMultipartUploadCommand(upload);
  await s3.call(async (sdk, options) => sdk.send(command, options));
}

async function begin(s3: S3Client, place: Omit<Upload, "UploadId">, sha256: string): Promise<Upload> {
  const command = new s3.sdk.CreateMultipartUploadCommand({ ...place, ...objectHeaders(sha256) });
  const { UploadId } = await s3.call(async (sdk, options) => sdk.send(command, options));
  if (UploadId === undefined) throw new StoreUnavailable("BAD_ANSWER");
  return { ...place, UploadId };
}

async function sendParts(
  s3: S3Client,
  upload: Upload,
  body: SpooledBody,
  stretches: readonly Stretch[],
): Promise<Part[]> {
  const waiting = stretches.map((stretch, index) => ({ stretch, PartNumber: index + 1 })).values();
  const parts: Part[] = [];
  let hasFailed = false;

  async function lane(): Promise<void> {
    for (const { stretch, PartNumber } of waiting) {
      if (hasFailed) return;
      try {
        parts.push({ PartNumber, ETag: await sendPart(s3, { ...upload, PartNumber }, body, stretch) });
      } catch (error) {
        hasFailed = true;
        throw error;
      }
    }
  }

  // Every lane is over before the upload is aborted: a part that lands after the abort would stay.
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, lane));
  for (const ended of lanes) if (ended.status === "rejected") throw ended.reason;
  return parts.toSorted((left, right) => left.PartNumber - right.PartNumber);
}

async function sendPart(
  s3: S3Client,
  part: Upload & { readonly PartNumber: number },
  body: SpooledBody,
  stretch: Stretch,
): Promise<string> {
  const command = new s3.sdk.UploadPartCommand(part);
  const content = {
    sizeBytes: stretch.range.end - stretch.range.start + 1,
    sha256: stretch.sha256,
    open: () => openVerified(body, stretch),
  };
  const { ETag } = await s3.callWith(command, content, async (sdk, ready, options) => sdk.send(ready, options));
  if (ETag === undefined) throw new StoreUnavailable("BAD_ANSWER");
  return ETag;
}
