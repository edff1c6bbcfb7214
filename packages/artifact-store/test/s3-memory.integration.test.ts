import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { openS3 } from "./open-s3.ts";

const run = promisify(execFile);
/** What may come and go with a body: the chunks on their way, sockets, and garbage that is not collected yet. Measured: 10 to 25. */
const GROWTH_MIB_MAX = 48;
/** 128 MiB shows what grows with a body; 1 GiB takes half a minute. */
const SIZES_MIB = process.env["KEBLE_LONG"] === "1" ? [256, 1024] : [128];

test.each(SIZES_MIB)(
  "a body of %d MiB goes through spool and store and comes back in memory that does not grow with it",
  async (mib) => {
    const directory = await mkdtemp(join(tmpdir(), "keble-s3-memory-"));
    const s3 = await openS3({ directory });
    try {
      const script = join(import.meta.dirname, "s3-round-trip-child.ts");
      const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
      const given = [JSON.stringify(s3.settings), join(s3.directory, "child"), String(mib)];
      const { stdout } = await run(process.execPath, [...flags, script, ...given]);
      expect((JSON.parse(stdout) as { readonly grownMib: number }).grownMib).toBeLessThan(GROWTH_MIB_MAX);
    } finally {
      await s3.close();
      await rm(directory, { recursive: true });
    }
  },
  120_000,
);
