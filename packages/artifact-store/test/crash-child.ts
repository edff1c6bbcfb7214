import { join } from "node:path";
import { createLocalStore, createSpool } from "../src/index.ts";
import { LOCAL_DISK, type LocalEdge } from "../src/local-edge.ts";

/**
 * A process that stops for ever at a named point, says so on its standard output, and is then killed by the test that
 * started it. Arguments: base directory, point, generation.
 */
const [base = "", point = "", generation = ""] = process.argv.slice(2);

async function hangAt(name: string): Promise<void> {
  if (name !== point) return;
  process.stdout.write(`reached ${name}\n`);
  await new Promise(() => {
    setInterval(() => undefined, 60_000);
  });
}

const edge: LocalEdge = {
  ...LOCAL_DISK,
  async create(path) {
    const file = await LOCAL_DISK.create(path);
    return {
      ...file,
      async write(bytes) {
        await file.write(bytes);
        await hangAt("temp-written");
      },
    };
  },
  async link(from, to) {
    await hangAt("temp-synced");
    await LOCAL_DISK.link(from, to);
    await hangAt("named");
  },
};

const never = new AbortController().signal;
const spool = createSpool({ directory: join(base, "spool") });
const store = createLocalStore({ directory: join(base, "store"), prefix: "p", edge });
await spool.start(never);
await store.start(never);
const body = spool.open();
await body.write(Buffer.alloc(600_000, 7));
await hangAt("spooling");
const spooled = await body.finish();
await hangAt("spooled");
await store.put(spooled, { sha256: spooled.sha256, generation });
