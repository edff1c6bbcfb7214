import { linkSync, readFileSync, renameSync, rmSync } from "node:fs";
import { isSameProcess, readProcessRecord, recordProcess } from "@keble-scraper/local-servers";
import { CliError } from "../cli-error.ts";

const TRIES = 20;

/**
 * Takes the lock of a state directory for this process, or fails with STATE_LOCKED. A lock whose process is dead, be it
 * that its pid is someone else's by now, is taken over. Returns what gives it back.
 */
export function takeStateLock(lock: string): () => void {
  const mine = `${lock}.${process.pid}`;
  recordProcess(mine, "up", process.pid);
  try {
    for (let tries = 0; tries < TRIES; tries++) {
      // A link appears with its content or not at all, and fails when the name is there.
      if (tryLink(mine, lock)) return () => rmSync(lock, { force: true });
      const holder = readProcessRecord(lock);
      if (holder !== null && isSameProcess(holder.pid, holder.startId)) {
        throw new CliError(
          "STATE_LOCKED",
          `Another \`keble-scraper up\` (pid ${holder.pid}) runs on this state directory.\nStop it, or set SCRAPER_STATE_DIRECTORY to another folder.`,
        );
      }
      setAside(lock, holder === null ? null : JSON.stringify(holder));
    }
  } finally {
    rmSync(mine, { force: true });
  }
  throw new CliError("STATE_LOCKED", `${lock} could not be taken: others take it at the same time.`);
}

/** Removes a dead lock, unless another start replaced it in the meantime: then that one is put back. */
function setAside(lock: string, expected: string | null): void {
  const aside = `${lock}.dead.${process.pid}`;
  try {
    renameSync(lock, aside);
  } catch {
    return;
  }
  if (expected !== null && readFileSync(aside, "utf8") !== expected) tryLink(aside, lock);
  rmSync(aside, { force: true });
}

function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") return false;
    throw error;
  }
}
