import { createHash } from "node:crypto";
import { createS3Store, createGeneration, createSpool, type S3Settings } from "../src/index.ts";

/**
 * A process that sends a body of so many MiB through the spool into the store, reads it back, and prints by how much its
 * resident memory grew meanwhile. Arguments: settings as JSON, spool directory, MiB.
 */
const [settings = "", directory = "", mib = ""] = process.argv.slice(2);
const MIB = 1024 * 1024;
const never = new AbortController().signal;
const spool = createSpool({ directory });
const store = createS3Store(JSON.parse(settings) as S3Settings);
await spool.start(never);
await store.start(never);

const chunk = Buffer.alloc(MIB / 16);

/** Sends a body of this size and reads it back. */
async function roundTrip(sizeMib: number): Promise<void> {
  const body = spool.open();
  for (let index = 0; index < sizeMib * 16; index += 1) await body.write(chunk.fill(index % 251));
  const spooled = await body.finish();
  const key = { sha256: spooled.sha256, generation: createGeneration() };
  await store.put(spooled, key);
  await spooled.discard();
  const hash = createHash("sha256");
  for await (const part of (await store.read(key))! as AsyncIterable<Uint8Array>) hash.update(part);
  if (hash.digest("hex") !== key.sha256) throw new Error("the bytes came back changed");
}

// What the SDK, its sockets and the collector take once is no growth.
await roundTrip(24);
const before = process.memoryUsage.rss();
let most = before;
const sampling = setInterval(() => {
  most = Math.max(most, process.memoryUsage.rss());
}, 5);
await roundTrip(Number(mib));
clearInterval(sampling);
process.stdout.write(`${JSON.stringify({ grownMib: (most - before) / MIB })}\n`);
await store.stop(0);
