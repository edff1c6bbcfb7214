import { readEncoding, readPageSize } from "./list-objects.ts";
import { element, type S3Answer, xmlAnswer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { accept, type S3Result } from "./s3-refusal.ts";
import { parameterOf } from "./s3-request.ts";
import { compareKeys } from "./sorted-keys.ts";

/** One page of the open uploads, in the order of their keys, then of their ids. */
export function listUploads(context: S3Context, { request }: S3Call): S3Result<S3Answer> {
  const encode = readEncoding(request);
  if (!encode.ok) return encode;
  const limit = readPageSize(request, "max-uploads");
  if (!limit.ok) return limit;
  const prefix = parameterOf(request, "prefix") ?? "";
  const keyMarker = parameterOf(request, "key-marker") ?? "";
  const idMarker = parameterOf(request, "upload-id-marker") ?? "";
  const found = context.uploads.all().filter(({ key, uploadId }) => {
    if (!key.startsWith(prefix)) return false;
    // Without an id the marker passes over every upload of its key.
    const order = compareKeys(key, keyMarker);
    return order > 0 || (order === 0 && idMarker !== "" && uploadId > idMarker);
  });
  const page = found.slice(0, limit.value);
  const last = page.at(-1);
  const next =
    found.length > page.length && last !== undefined
      ? [element("NextKeyMarker", encode.value(last.key)), element("NextUploadIdMarker", last.uploadId)]
      : [];
  const content = [
    element("Bucket", context.bucket),
    element("KeyMarker", encode.value(keyMarker)),
    element("UploadIdMarker", idMarker),
    ...next,
    element("Prefix", encode.value(prefix)),
    element("MaxUploads", limit.value),
    ...(parameterOf(request, "encoding-type") === undefined ? [] : [element("EncodingType", "url")]),
    element("IsTruncated", String(next.length > 0)),
    ...page.map(({ key, uploadId, initiatedAtMs }) => {
      const fields = [
        element("Key", encode.value(key)),
        element("UploadId", uploadId),
        element("StorageClass", "STANDARD"),
        element("Initiated", new Date(initiatedAtMs).toISOString()),
      ];
      return `<Upload>${fields.join("")}</Upload>`;
    }),
  ];
  return accept(xmlAnswer("ListMultipartUploadsResult", content.join("")));
}
