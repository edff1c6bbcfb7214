import type { S3Context } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import type { S3Request } from "./s3-request.ts";

/**
 * Refuses a write that must not replace anything when something is there: S3 by `If-None-Match: *`, which OSS ignores; OSS
 * by `x-oss-forbid-overwrite: true`, which S3 ignores. Ask before the body, to spare it, and again right before the write.
 */
export function checkAbsence({ dialect, objects }: S3Context, { headers, key }: S3Request): S3Result<void> {
  const there = objects.get(key) !== undefined;
  if (dialect === "OSS") {
    return there && headers.get("x-oss-forbid-overwrite") === "true"
      ? refuse("FileAlreadyExists", { ec: "0026-00000025" })
      : accept(undefined);
  }
  const condition = headers.get("if-none-match");
  if (headers.has("if-match") || (condition !== undefined && condition !== "*")) {
    return refuse("NotImplemented", {
      message: "A header you provided implies functionality that is not implemented.",
    });
  }
  return there && condition === "*"
    ? refuse("PreconditionFailed", { details: { Condition: "If-None-Match" } })
    : accept(undefined);
}

/**
 * Notes that a conditional put of a key is under way, until the returned function is called; refused when another one is
 * and racing puts conflict.
 */
export function claimKey({ dialect, racing, conditionalPuts }: S3Context, request: S3Request): S3Result<() => void> {
  const { key, headers } = request;
  if (dialect === "OSS" || racing === "PRECONDITION" || !headers.has("if-none-match")) return accept(() => undefined);
  if (conditionalPuts.has(key)) return refuse("ConditionalRequestConflict", { details: { Key: key } });
  conditionalPuts.add(key);
  return accept(() => void conditionalPuts.delete(key));
}
