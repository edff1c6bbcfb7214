import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createGeneration } from "../src/index.ts";
import { spoolBytes } from "./conformance.ts";
import { openS3 } from "./open-s3.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;

// Parts of a dead writer are billed for ever and shown by no listing of objects.
test("A3 a writer killed in the middle of an upload leaves no object, and what it left goes as a stray", async () => {
  const s3 = await openS3();
  try {
    const hang = s3.server.fail({ operation: "UploadPart", times: Infinity }, { kind: "HANG" });
    const script = join(import.meta.dirname, "s3-round-trip-child.ts");
    const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
    const directory = join(s3.directory, "child");
    await mkdir(directory);
    const child = spawn(process.execPath, [...flags, script, JSON.stringify(s3.settings), directory, "24"], {
      stdio: ["ignore", "ignore", "inherit"],
    });
    const exited = once(child, "exit");
    await hang.reached(2);
    child.kill("SIGKILL");
    await exited;
    hang.lift();
    expect(s3.server.uploads().length).toBe(1);
    expect(await s3.store.list(null)).toEqual({ items: [], nextCursor: null });
    expect(await s3.store.removeStrays(new Date(Date.now() - 60_000), never)).toBe(0);
    expect(await s3.store.removeStrays(new Date(Date.now() + 60_000), never)).toBe(1);
    expect(s3.server.uploads()).toEqual([]);
    const body = await spoolBytes(s3.spool, Buffer.alloc(20 * MIB, 7));
    const key = { sha256: body.sha256, generation: createGeneration() };
    await s3.store.put(body, key);
    expect(await s3.store.head(key)).toEqual({ sizeBytes: 20 * MIB });
  } finally {
    await s3.close();
  }
});
