import type { BinaryKey } from "../binary-key.ts";
import { addMiddleware } from "./s3-client.ts";
import { type S3Context, toObjectName } from "./s3-context.ts";

/**
 * What a link gives: one object, until `expiresAtMs` (Unix milliseconds, rounded down to a second), answered with this
 * content type and disposition (visible ASCII and spaces), and the id of the audit row that says who asked.
 */
export type S3Download = {
  readonly key: BinaryKey;
  readonly auditId: string;
  readonly expiresAtMs: number;
  readonly contentType: string;
  readonly disposition: string;
};

/** The longest that signature version 4 allows: seven days, in seconds. */
const LIFETIME_SECONDS_MAX = 604_800;
const AUDIT_PARAMETER = "x-keble-audit-id";

/**
 * A link to the object, signed in memory: no request is made. The audit id stands in the query inside the signature, so
 * it is in the service's access log with each use, and a link without it, or with another one, is refused. Throws (a fault)
 * on a time that is over or more than seven days away.
 */
export async function signDownload({ settings, client }: S3Context, download: S3Download): Promise<string> {
  const nowMs = Date.now();
  // A link is dated in whole seconds, and its lifetime counts from there.
  const expiresIn = Math.floor(download.expiresAtMs / 1000) - Math.floor(nowMs / 1000);
  if (expiresIn < 1 || expiresIn > LIFETIME_SECONDS_MAX) throw new Error("not a time a link can end at");
  for (const text of [download.contentType, download.disposition, download.auditId]) {
    if (!/^[\x20-\x7e]*$/u.test(text)) throw new Error("not text for a link");
  }
  const { sdk, client: signer } = client();
  // A command of its own for each: the middleware stays with it.
  const command = new sdk.GetObjectCommand({
    Bucket: settings.bucket,
    Key: toObjectName(settings, download.key),
    ResponseContentType: download.contentType,
    ResponseContentDisposition: download.disposition,
  });
  addMiddleware(command, "build", AUDIT_PARAMETER, (next) => async (args) => {
    args.request.query = { ...args.request.query, [AUDIT_PARAMETER]: download.auditId };
    return next(args);
  });
  return sdk.getSignedUrl(signer, command, { expiresIn, signingDate: new Date(nowMs) });
}
