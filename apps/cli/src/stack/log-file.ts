import { closeSync, copyFileSync, fstatSync, openSync, readSync, renameSync, statSync, truncateSync } from "node:fs";

const LOG_BYTES_MAX = 32 * 1024 * 1024;
const TAIL_BYTES = 4 * 1024;

/** Sets an overgrown log aside before its program starts (one old file is kept); returns the size it goes on from. */
export function rotateLog(file: string): number {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= LOG_BYTES_MAX) return size;
  renameSync(file, `${file}.old`);
  return 0;
}

/**
 * The same for a log that a program is writing: it appends, so its next line lands in the emptied file. Lines written
 * between the copy and the cut are lost.
 */
export function trimLog(file: string): void {
  const size = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= LOG_BYTES_MAX) return;
  copyFileSync(file, `${file}.old`);
  truncateSync(file);
}

/** The last lines since the log had `from` bytes; empty when there are none. */
export function tailLog(file: string, from: number): string {
  const log = openSync(file, "r");
  try {
    const end = fstatSync(log).size;
    const start = Math.max(from, end - TAIL_BYTES);
    const bytes = Buffer.alloc(Math.max(0, end - start));
    const read = readSync(log, bytes, 0, bytes.length, start);
    return bytes.subarray(0, read).toString("utf8").trim().split("\n").slice(-8).join("\n");
  } finally {
    closeSync(log);
  }
}
