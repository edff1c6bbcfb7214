import { createReadStream } from "node:fs";
import { addAbortSignal, pipeline, type Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { CliError } from "../cli-error.ts";

/** The name that stands for standard input. */
export const STDIN = "-";

/**
 * A log's bytes, from a file or from standard input (`-`); a file named `.gz` is unpacked. Throws CliError: USAGE when it can't be
 * read, FAULT when `stop` aborts.
 */
export async function* openLog(name: string, stop: AbortSignal): AsyncGenerator<Uint8Array> {
  try {
    for await (const chunk of addAbortSignal(stop, openStream(name))) yield chunk as Uint8Array;
  } catch (error) {
    if (stop.aborted) throw new CliError("FAULT", "Stopped before the end of the logs.", { cause: error });
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
