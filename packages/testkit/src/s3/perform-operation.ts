import { listObjects } from "./list-objects.ts";
import { listUploads } from "./list-uploads.ts";
import { abortUpload, completeUpload, createUpload, uploadPart } from "./multipart-operations.ts";
import { deleteObject, getObject, headObject, putObject } from "./object-operations.ts";
import { emptyAnswer, type S3Answer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf, type S3Request } from "./s3-request.ts";

/** The operations of this server, by the names S3 gives them. Everything else is Other, and answered NotImplemented. */
export type S3Operation =
  | "PutObject"
  | "GetObject"
  | "HeadObject"
  | "DeleteObject"
  | "ListObjectsV2"
  | "HeadBucket"
  | "CreateMultipartUpload"
  | "UploadPart"
  | "CompleteMultipartUpload"
  | "AbortMultipartUpload"
  | "ListMultipartUploads"
  | "Other";

/** Parameters that turn a request into one of another operation. */
const UNKNOWN = [
  "acl",
  "attributes",
  "delete",
  "legal-hold",
  "lifecycle",
  "restore",
  "retention",
  "tagging",
  "versionId",
];

/** Which operation a request asks for. */
export function operationOf(request: S3Request): S3Operation {
  const has = (name: string) => parameterOf(request, name) !== undefined;
  if (request.bucket === "" || UNKNOWN.some(has) || request.headers.has("x-amz-copy-source")) return "Other";
  if (request.key === "") {
    if (request.method === "HEAD") return "HeadBucket";
    if (request.method !== "GET") return "Other";
    return has("uploads")
      ? "ListMultipartUploads"
      : parameterOf(request, "list-type") === "2"
        ? "ListObjectsV2"
        : "Other";
  }
  switch (request.method) {
    case "PUT":
      return has("uploadId") ? "UploadPart" : "PutObject";
    case "GET":
      return has("uploadId") || has("partNumber") ? "Other" : "GetObject";
    case "HEAD":
      return has("partNumber") ? "Other" : "HeadObject";
    case "DELETE":
      return has("uploadId") ? "AbortMultipartUpload" : "DeleteObject";
    case "POST":
      return has("uploads") ? "CreateMultipartUpload" : has("uploadId") ? "CompleteMultipartUpload" : "Other";
    default:
      return "Other";
  }
}

/** Does what an authorized request asks for. Throws only when the sender hangs up. */
export async function performOperation(
  operation: S3Operation,
  context: S3Context,
  call: S3Call,
): Promise<S3Result<S3Answer>> {
  const { dialect, bucket } = context;
  const { request } = call;
  if (dialect === "OSS" && request.addressing === "PATH") {
    return refuse("SecondLevelDomainForbidden", { ec: "0003-00000102" });
  }
  const chunked = refuseChunked(context, call);
  if (chunked !== null) return chunked;
  if (request.bucket !== "" && request.bucket !== bucket) {
    return refuse("NoSuchBucket", { details: { BucketName: request.bucket } });
  }
  switch (operation) {
    case "PutObject":
      return putObject(context, call);
    case "GetObject":
      return getObject(context, call);
    case "HeadObject":
      return headObject(context, call);
    case "DeleteObject":
      return deleteObject(context, call);
    case "ListObjectsV2":
      return listObjects(context, call);
    case "HeadBucket":
      return accept(emptyAnswer(200, { "x-amz-bucket-region": "us-east-1" }));
    case "CreateMultipartUpload":
      return createUpload(context, call);
    case "UploadPart":
      return uploadPart(context, call);
    case "CompleteMultipartUpload":
      return completeUpload(context, call);
    case "AbortMultipartUpload":
      return abortUpload(context, call);
    case "ListMultipartUploads":
      return listUploads(context, call);
    case "Other":
      return refuse("NotImplemented");
  }
}

/**
 * Bodies in aws-chunked coding are refused: by S3's dialect, and OSS' for the signed kind that OSS would take, as not
 * implemented; by OSS' dialect for every other kind as OSS does.
 */
function refuseChunked({ dialect }: S3Context, { request, payloadHash }: S3Call): ReturnType<typeof refuse> | null {
  const coding = request.headers.get("content-encoding") ?? "";
  if (!payloadHash.startsWith("STREAMING-") && !/\baws-chunked\b/.test(coding)) return null;
  if (dialect === "OSS" && payloadHash !== "STREAMING-AWS4-HMAC-SHA256-PAYLOAD") {
    const message = "aws-chunked encoding is not supported with the specified x-amz-content-sha256 value.";
    return refuse("InvalidArgument", { message, ec: "0017-00000804" });
  }
  return refuse("NotImplemented", { message: "Bodies in aws-chunked coding are not implemented here." });
}
