import { KEPT_HEADERS, readKeptHeaders } from "./kept-headers.ts";
import type { StoredObject } from "./object-table.ts";
import { readRange } from "./read-range.ts";
import { receiveBody } from "./receive-body.ts";
import { emptyAnswer, type S3Answer } from "./s3-answer.ts";
import type { S3Call, S3Context } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf, type S3Request } from "./s3-request.ts";
import type { Piece } from "./piece-keeper.ts";
import { checkAbsence, claimKey } from "./write-conditions.ts";

/** Stores one object, whole or not at all. */
export async function putObject(context: S3Context, call: S3Call): Promise<S3Result<S3Answer>> {
  const { request } = call;
  const kept = readKeptHeaders(request);
  if (!kept.ok) return kept;
  const before = checkAbsence(context, request);
  if (!before.ok) return before;
  const claimed = claimKey(context, request);
  if (!claimed.ok) return claimed;
  let received: S3Result<Piece>;
  try {
    received = await receiveBody(request, call.payloadHash, call.body, context.keeper);
  } finally {
    claimed.value();
  }
  if (!received.ok) return received;
  const piece = received.value;
  // Another put may have ended while this one's body came in.
  const absent = checkAbsence(context, request);
  if (!absent.ok) {
    await piece.remove();
    return absent;
  }
  context.objects.put({
    key: request.key,
    pieces: [piece],
    sizeBytes: piece.sizeBytes,
    sha256: piece.sha256,
    etag: piece.md5,
    storedAtMs: context.nowMs(),
    ...kept.value,
  });
  return accept(emptyAnswer(200, { etag: quoteEtag(context, piece.md5) }));
}

/** An object's bytes, or the part of them that a Range asks for. */
export function getObject(context: S3Context, { request }: S3Call): S3Result<S3Answer> {
  const object = context.objects.get(request.key);
  if (object === undefined) return refuse("NoSuchKey", { details: { Key: request.key } });
  const range = readRange(request.headers.get("range"), object.sizeBytes);
  if (range === "UNSATISFIABLE") {
    const ActualObjectSize = String(object.sizeBytes);
    return refuse("InvalidRange", {
      details: { RangeRequested: request.headers.get("range") ?? "", ActualObjectSize },
    });
  }
  const overrides = readOverrides(request);
  if (!overrides.ok) return overrides;
  const start = range?.start ?? 0;
  const end = range?.end ?? object.sizeBytes - 1;
  return accept({
    status: range === null ? 200 : 206,
    headers: {
      ...describeObject(context, request, object),
      ...overrides.value,
      "content-length": String(end - start + 1),
      ...(range === null ? {} : { "content-range": `bytes ${start}-${end}/${object.sizeBytes}` }),
    },
    body: { kind: "BYTES", pieces: object.pieces, start, end },
    objectBytes: object.sizeBytes,
  });
}

/** What GET would answer, without the bytes. A missing object is a bare 404. */
export function headObject(context: S3Context, call: S3Call): S3Result<S3Answer> {
  const answer = getObject(context, call);
  return answer.ok ? accept({ ...answer.value, body: { kind: "NONE" } }) : answer;
}

/** Removes an object; one that is not there is removed as well. */
export function deleteObject(context: S3Context, { request }: S3Call): S3Result<S3Answer> {
  context.objects.delete(request.key);
  return accept(emptyAnswer(204));
}

/** An ETag as the dialect writes it: quoted, and upper case at OSS. */
export function quoteEtag({ dialect }: S3Context, etag: string): string {
  return `"${dialect === "OSS" ? etag.toUpperCase() : etag}"`;
}

function describeObject(context: S3Context, request: S3Request, object: StoredObject): Record<string, string> {
  const metadata = Object.entries(object.metadata).map(([name, value]) => [`x-amz-meta-${name}`, value] as const);
  const checksum =
    request.headers.get("x-amz-checksum-mode") === "ENABLED" && object.pieces.length === 1
      ? { "x-amz-checksum-sha256": Buffer.from(object.sha256, "hex").toString("base64") }
      : {};
  return {
    "content-type": "binary/octet-stream",
    ...object.headers,
    ...Object.fromEntries(metadata),
    ...checksum,
    etag: quoteEtag(context, object.etag),
    "last-modified": new Date(object.storedAtMs).toUTCString(),
    "accept-ranges": "bytes",
  };
}

/** The `response-…` parameters, which only a signed request may have; every request here is signed. */
function readOverrides(request: S3Request): S3Result<Record<string, string>> {
  const overrides: Record<string, string> = {};
  for (const name of KEPT_HEADERS) {
    const value = parameterOf(request, `response-${name}`);
    if (value === undefined) continue;
    if (/[^\t\x20-\x7e]/.test(value))
      return refuse("InvalidArgument", { message: `response-${name} is no header value.` });
    overrides[name] = value;
  }
  return accept(overrides);
}
