import { createHash } from "node:crypto";
import { join } from "node:path";
import { type LocalEdge, unlinkIfThere } from "./local-edge.ts";
import { lstatIfThere } from "./local-listing.ts";
import { TEMP_PREFIX } from "./local-names.ts";
import { createMark } from "./process-mark.ts";
import type { SpooledBody } from "./spooled-body.ts";
import { errnoOf, StoreUnavailable } from "./store-unavailable.ts";

/**
 * Writes the body to a temp file in `shard`, syncs it, and gives it its name; the entry itself is not synced yet. The
 * name is given by a link, so no existing file is ever written over, and a reader sees all of the bytes or no file. On
 * an error nothing is left but what a dead process leaves: a temp file for the sweep.
 */
export async function writeLocal(
  edge: LocalEdge,
  place: { readonly shard: string; readonly target: string },
  body: SpooledBody,
): Promise<void> {
  const temp = join(place.shard, `${TEMP_PREFIX}${createMark()}`);
  try {
    await writeTemp(edge, temp, body);
    await nameTemp(edge, temp, place.target, body.sizeBytes);
  } finally {
    await unlinkIfThere(edge, temp);
  }
}

async function writeTemp(edge: LocalEdge, temp: string, body: SpooledBody): Promise<void> {
  const file = await edge.create(temp);
  try {
    const whole = body.bytes();
    if (whole === null) await copyStream(body, async (chunk) => file.write(chunk));
    else await file.write(whole);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** The bytes come back from a disk, so they are hashed again: a damaged spool file must not get a good name. */
async function copyStream(body: SpooledBody, write: (chunk: Uint8Array) => Promise<unknown>): Promise<void> {
  const hash = createHash("sha256");
  for await (const chunk of body.openStream() as AsyncIterable<Uint8Array>) {
    hash.update(chunk);
    await write(chunk);
  }
  if (hash.digest("hex") !== body.sha256) throw new StoreUnavailable("SPOOL_DAMAGED");
}

async function nameTemp(edge: LocalEdge, temp: string, target: string, sizeBytes: number): Promise<void> {
  try {
    await edge.link(temp, target);
  } catch (error) {
    if (errnoOf(error) !== "EEXIST") throw error;
    const existing = await lstatIfThere(target);
    if (existing?.isFile() === true && existing.size === sizeBytes) return;
    // Its name says what its bytes must be, so a file of another size is damaged.
    await unlinkIfThere(edge, target);
    await edge.link(temp, target);
  }
}
