import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream";
import { createGunzip } from "node:zlib";
import { CliError } from "../cli-error.ts";

/** The name that stands for standard input. */
export const STDIN = "-";

/** A log's bytes, from a file or from standard input (`-`); a file named `.gz` is unpacked. USAGE when it can't be read. */
export async function* openLog(name: string): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of openStream(name)) yield chunk as Uint8Array;
  } catch (error) {
    const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : null;
    if (code === null) throw error;
    throw new CliError("USAGE", `${name}: it can't be read (${code}).`, { cause: error });
  }
}

function openStream(name: string): Readable {
  if (name === STDIN) return process.stdin;
  const file = createReadStream(name);
  // What goes wrong with either ends the reading of the second.
  return name.endsWith(".gz") ? pipeline(file, createGunzip(), () => undefined) : file;
}
