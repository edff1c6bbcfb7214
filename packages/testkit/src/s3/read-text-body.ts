import { createHash } from "node:crypto";
import type { S3Call } from "./s3-context.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";

/** The longest document a request may send; a list of 10,000 parts with checksums fits. */
const TEXT_BYTES_MAX = 4 * 1024 * 1024;

/** A short body as text, checked against the hash that was signed. */
export async function readTextBody({ payloadHash, body }: S3Call): Promise<S3Result<string>> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body()) {
    bytes += chunk.length;
    // Read to its end all the same: leaving it would cut the connection instead of refusing.
    if (bytes <= TEXT_BYTES_MAX) chunks.push(chunk);
  }
  if (bytes > TEXT_BYTES_MAX) return refuse("MalformedXML");
  const whole = Buffer.concat(chunks);
  const sha256 = createHash("sha256").update(whole).digest("hex");
  if (/^[0-9a-f]{64}$/.test(payloadHash) && payloadHash !== sha256) {
    return refuse("XAmzContentSHA256Mismatch", {
      details: { ClientComputedContentSHA256: payloadHash, S3ComputedContentSHA256: sha256 },
    });
  }
  return accept(whole.toString("utf8"));
}
