import { createHash } from "node:crypto";
import type { Piece, PieceKeeper } from "./piece-keeper.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import type { S3Request } from "./s3-request.ts";

/** S3's own limit of one put: 5 GiB. */
const PUT_BYTES_MAX = 5 * 1024 ** 3;

/** Checksums other than these are answered NotImplemented. */
const CHECKSUMS = { "x-amz-checksum-sha256": 32, "x-amz-checksum-crc32": 4 } as const;

/**
 * Takes a body in, piece by piece with back-pressure, and checks it against every hash that came with it. What is refused
 * leaves nothing behind. Throws when the sender hangs up.
 */
export async function receiveBody(
  request: S3Request,
  payloadHash: string,
  body: () => AsyncIterable<Buffer>,
  keeper: PieceKeeper,
): Promise<S3Result<Piece>> {
  const promised = checkPromises(request);
  if (!promised.ok) return promised;
  const sink = await keeper.open();
  let piece: Piece;
  try {
    for await (const chunk of body()) await sink.write(chunk);
    piece = await sink.finish();
  } catch (error) {
    await sink.abandon();
    throw error;
  }
  const kept = checkPiece(request, payloadHash, piece);
  if (!kept.ok) await piece.remove();
  return kept;
}

/** What can be refused before a byte of the body is read. */
function checkPromises({ headers }: S3Request): S3Result<void> {
  const length = headers.get("content-length");
  if (length === undefined) return refuse("MissingContentLength");
  if (Number(length) > PUT_BYTES_MAX) return refuse("EntityTooLarge");
  const md5 = headers.get("content-md5");
  if (md5 !== undefined && !isBase64(md5, 16)) return refuse("InvalidDigest");
  for (const [name, value] of headers) {
    if (!name.startsWith("x-amz-checksum-") || name === "x-amz-checksum-algorithm") continue;
    const bytes = (CHECKSUMS as Readonly<Record<string, number>>)[name];
    if (bytes === undefined) return refuse("NotImplemented", { message: `${name} is not implemented here.` });
    if (!isBase64(value, bytes)) return refuse("InvalidRequest", { message: `Value for ${name} header is invalid.` });
  }
  return accept(undefined);
}

function checkPiece({ headers }: S3Request, payloadHash: string, piece: Piece): S3Result<Piece> {
  if (/^[0-9a-f]{64}$/.test(payloadHash) && payloadHash !== piece.sha256) {
    return refuse("XAmzContentSHA256Mismatch", {
      details: { ClientComputedContentSHA256: payloadHash, S3ComputedContentSHA256: piece.sha256 },
    });
  }
  const md5 = headers.get("content-md5");
  if (md5 !== undefined && md5 !== fromHex(piece.md5)) return refuse("BadDigest");
  const sha256 = headers.get("x-amz-checksum-sha256");
  if (sha256 !== undefined && sha256 !== fromHex(piece.sha256)) {
    return refuse("BadDigest", { message: "The SHA256 you specified did not match the calculated checksum." });
  }
  const crc32 = headers.get("x-amz-checksum-crc32");
  if (crc32 !== undefined && crc32 !== fromHex(piece.crc32.toString(16).padStart(8, "0"))) {
    return refuse("BadDigest", { message: "The CRC32 you specified did not match the calculated checksum." });
  }
  return accept(piece);
}

/** The ETag of an upload's parts: the MD5 of their MD5s, and how many there are. */
export function compositeEtag(pieces: readonly Piece[]): string {
  const hash = createHash("md5");
  for (const { md5 } of pieces) hash.update(Buffer.from(md5, "hex"));
  return `${hash.digest("hex")}-${pieces.length}`;
}

function isBase64(text: string, bytes: number): boolean {
  const decoded = Buffer.from(text, "base64");
  return decoded.length === bytes && decoded.toString("base64") === text;
}

function fromHex(hex: string): string {
  return Buffer.from(hex, "hex").toString("base64");
}
