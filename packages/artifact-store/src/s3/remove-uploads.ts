import { StoreUnavailable } from "../store-unavailable.ts";
import { abortUpload } from "./put-parts.ts";
import { parseObjectName, type S3Context } from "./s3-context.ts";
import { answerOf } from "./s3-fault.ts";

/** Uploads looked at in one request; S3's own limit. */
const PAGE_MAX = 1000;

/**
 * Aborts the uploads of our keys that were begun before `before`: their writers are dead, or will fail with the abort and
 * send again. Returns how many; stops between two when the signal aborts.
 */
export async function removeUploads(context: S3Context, before: Date, signal: AbortSignal): Promise<number> {
  const { settings } = context;
  const s3 = context.client();
  let removed = 0;
  let markers: Markers | null = {};
  while (markers !== null) {
    const page: UploadPage = await listUploads(context, markers);
    for (const { name, uploadId, begunAt } of page.uploads) {
      if (signal.aborted) return removed;
      if (parseObjectName(settings, name) === null || begunAt >= before) continue;
      try {
        await abortUpload(s3, { Bucket: settings.bucket, Key: name, UploadId: uploadId });
        removed += 1;
      } catch (error) {
        // Completed or aborted by another since the listing.
        if (answerOf(error)?.code !== "NoSuchUpload") throw error;
      }
    }
    markers = page.next;
  }
  return removed;
}

type Markers = { readonly KeyMarker?: string; readonly UploadIdMarker?: string };
type ListedUpload = { readonly name: string; readonly uploadId: string; readonly begunAt: Date };
type UploadPage = { readonly uploads: readonly ListedUpload[]; readonly next: Markers | null };

async function listUploads({ settings, client }: S3Context, markers: Markers): Promise<UploadPage> {
  const s3 = client();
  const command = new s3.sdk.ListMultipartUploadsCommand({
    Bucket: settings.bucket,
    Prefix: `${settings.prefix}/`,
    MaxUploads: PAGE_MAX,
    ...markers,
  });
  const page = await s3.call(async (sdk, options) => sdk.send(command, options));
  const uploads = (page.Uploads ?? []).map(({ Key, UploadId, Initiated }) => {
    if (Key === undefined || UploadId === undefined || Initiated === undefined)
      throw new StoreUnavailable("BAD_ANSWER");
    return { name: Key, uploadId: UploadId, begunAt: Initiated };
  });
  if (page.IsTruncated !== true) return { uploads, next: null };
  const { NextKeyMarker, NextUploadIdMarker } = page;
  const next = {
    ...(NextKeyMarker === undefined ? {} : { KeyMarker: NextKeyMarker }),
    ...(NextUploadIdMarker === undefined ? {} : { UploadIdMarker: NextUploadIdMarker }),
  };
  // A service that says "more" and does not get on would keep the loop for ever.
  if (next.KeyMarker === undefined || isSame(next, markers)) throw new StoreUnavailable("BAD_ANSWER");
  return { uploads, next };
}

function isSame(left: Markers, right: Markers): boolean {
  return left.KeyMarker === right.KeyMarker && left.UploadIdMarker === right.UploadIdMarker;
}
