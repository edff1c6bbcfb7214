import { createHash } from "node:crypto";
import { Readable } from "node:stream";
import type { ByteRange } from "../binary-store.ts";
import type { SpooledBody } from "../spooled-body.ts";
import { StoreUnavailable } from "../store-unavailable.ts";

/** A stretch of a spooled body, and the hash (lower-case hex) that its bytes must have. */
export type Stretch = { readonly range: ByteRange; readonly sha256: string };

/**
 * The stretch's bytes, hashed again as they come back from the disk. The last chunk is held back until the hash is
 * known to be right: of a damaged spool file the service never gets the whole, whether it checks hashes or not. Fails with
 * `SPOOL_DAMAGED`. Opens nothing before it is read.
 */
export function openVerified(body: SpooledBody, { range, sha256 }: Stretch): Readable {
  async function* verified(): AsyncGenerator<Uint8Array> {
    const hash = createHash("sha256");
    let held: Uint8Array | null = null;
    for await (const chunk of body.openStream(range) as AsyncIterable<Uint8Array>) {
      hash.update(chunk);
      if (held !== null) yield held;
      held = chunk;
    }
    if (hash.digest("hex") !== sha256) throw new StoreUnavailable("SPOOL_DAMAGED");
    if (held !== null) yield held;
  }
  return Readable.from(verified(), { objectMode: false });
}

/**
 * Reads the whole body once and hashes each of its parts. Throws `SPOOL_DAMAGED` when the whole is not what was
 * spooled, so that a damaged body is not even begun.
 */
export async function hashParts(body: SpooledBody, partBytes: number): Promise<readonly Stretch[]> {
  const whole = createHash("sha256");
  const parts: Stretch[] = [];
  for (let start = 0; start < body.sizeBytes; start += partBytes) {
    const range = { start, end: Math.min(start + partBytes, body.sizeBytes) - 1 };
    const hash = createHash("sha256");
    for await (const chunk of body.openStream(range) as AsyncIterable<Uint8Array>) {
      hash.update(chunk);
      whole.update(chunk);
    }
    parts.push({ range, sha256: hash.digest("hex") });
  }
  if (whole.digest("hex") !== body.sha256) throw new StoreUnavailable("SPOOL_DAMAGED");
  return parts;
}
