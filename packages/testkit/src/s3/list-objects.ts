import { encodeForSignature } from "./canonical-request.ts";
import { quoteEtag } from "./object-operations.ts";
import { element, type S3Answer, xmlAnswer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf, type S3Request } from "./s3-request.ts";

/** S3's own limit of a page. */
const PAGE_MAX = 1000;

/** One page of the bucket's objects, in key order. `delimiter` is not implemented. */
export function listObjects(context: S3Context, { request }: S3Call): S3Result<S3Answer> {
  const encode = readEncoding(request);
  if (!encode.ok) return encode;
  const limit = readPageSize(request, "max-keys");
  if (!limit.ok) return limit;
  if ((parameterOf(request, "delimiter") ?? "") !== "") return refuse("NotImplemented", { message: "No delimiters." });
  const prefix = parameterOf(request, "prefix") ?? "";
  const startAfter = parameterOf(request, "start-after");
  const token = parameterOf(request, "continuation-token");
  const after = token === undefined ? (startAfter ?? "") : readToken(token);
  if (after === null) return refuse("InvalidArgument", { message: "The continuation token provided is incorrect" });
  const found = limit.value === 0 ? [] : context.objects.listAfter(after, prefix, limit.value + 1);
  const page = found.slice(0, limit.value);
  const last = page.at(-1);
  const truncated = found.length > page.length && last !== undefined;
  const content = [
    element("Name", context.bucket),
    element("Prefix", encode.value(prefix)),
    element("KeyCount", page.length),
    element("MaxKeys", limit.value),
    ...(parameterOf(request, "encoding-type") === undefined ? [] : [element("EncodingType", "url")]),
    element("IsTruncated", String(truncated)),
    ...(token === undefined ? [] : [element("ContinuationToken", token)]),
    ...(startAfter === undefined ? [] : [element("StartAfter", encode.value(startAfter))]),
    ...(truncated ? [element("NextContinuationToken", writeToken(last.key))] : []),
    ...page.map(({ key, storedAtMs, etag, sizeBytes }) => {
      const fields = [
        element("Key", encode.value(key)),
        element("LastModified", new Date(storedAtMs).toISOString()),
        element("ETag", quoteEtag(context, etag)),
        element("Size", sizeBytes),
        element("StorageClass", "STANDARD"),
      ];
      return `<Contents>${fields.join("")}</Contents>`;
    }),
  ];
  return accept(xmlAnswer("ListBucketResult", content.join("")));
}

/** How a listing writes keys: as they are, or percent-encoded with `encoding-type=url`. */
export function readEncoding(request: S3Request): S3Result<(key: string) => string> {
  const type = parameterOf(request, "encoding-type");
  if (type === undefined) return accept((key: string) => key);
  if (type !== "url") return refuse("InvalidArgument", { message: "Invalid Encoding Method specified in Request" });
  return accept((key: string) => key.split("/").map(encodeForSignature).join("/"));
}

/** The page size that a parameter asks for; more than 1,000, or nothing, is 1,000. */
export function readPageSize(request: S3Request, name: string): S3Result<number> {
  const text = parameterOf(request, name);
  if (text === undefined) return accept(PAGE_MAX);
  if (!/^\d{1,9}$/.test(text)) {
    return refuse("InvalidArgument", { message: `Provided ${name} not an integer or within integer range` });
  }
  return accept(Math.min(Number(text), PAGE_MAX));
}

function writeToken(key: string): string {
  return Buffer.from(`after:${key}`).toString("base64");
}

function readToken(token: string): string | null {
  const text = Buffer.from(token, "base64").toString();
  return text.startsWith("after:") && writeToken(text.slice(6)) === token ? text.slice(6) : null;
}
