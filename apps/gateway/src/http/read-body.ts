import { localFailure } from "@keble-scraper/contract";
import { ApiFailure, invalidRequest } from "../api-failure.ts";

/** The largest body of anything but a batch: 256 KiB. */
export const BODY_BYTES_MAX = 262_144;
/** The largest body of a batch: 4 MiB. */
export const BATCH_BYTES_MAX = 4_194_304;

const JSON_TYPE = /^application\/json[ \t]*(?:;[ \t]*charset[ \t]*=[ \t]*"?utf-8"?[ \t]*)?(?:;[ \t]*)?$/iu;

/**
 * The bytes of a JSON body, at most `bytesMax` of them; null when there is none. What is over the limit is refused by its
 * declared length or as soon as it arrives, and is not kept: PAYLOAD_TOO_LARGE. Another type, charset or a content coding
 * is UNSUPPORTED_MEDIA_TYPE.
 */
export async function readJsonBody(request: Request, bytesMax: number): Promise<Uint8Array | null> {
  const declared = request.headers.get("content-length");
  const isChunked = request.headers.has("transfer-encoding");
  if (declared !== null && Number(declared) > bytesMax) {
    throw new ApiFailure(localFailure("PAYLOAD_TOO_LARGE"));
  }
  if (!isChunked && (declared === null || Number(declared) === 0)) {
    return null;
  }
  const coding = request.headers.get("content-encoding");
  if (!JSON_TYPE.test(request.headers.get("content-type") ?? "") || (coding !== null && coding !== "identity")) {
    throw new ApiFailure(localFailure("UNSUPPORTED_MEDIA_TYPE"));
  }
  try {
    // A declared length is kept by the HTTP parser, so the fast way is bounded as well.
    const bytes = isChunked ? await readBounded(request, bytesMax) : new Uint8Array(await request.arrayBuffer());
    return bytes.byteLength === 0 ? null : bytes;
  } catch (error) {
    // The only other failure of a body is a connection that ended within it.
    throw error instanceof ApiFailure ? error : invalidRequest("", "The body ended before its end.");
  }
}

async function readBounded(request: Request, bytesMax: number): Promise<Uint8Array> {
  const reader = (request.body as ReadableStream<Uint8Array> | null)?.getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  for (let part = await reader?.read(); part?.value !== undefined; part = await reader?.read()) {
    size += part.value.byteLength;
    if (size > bytesMax) {
      // The rest is left to the server, which drains a little of it, so that the answer is read, and closes.
      throw new ApiFailure(localFailure("PAYLOAD_TOO_LARGE"));
    }
    chunks.push(part.value);
  }
  return Buffer.concat(chunks);
}
