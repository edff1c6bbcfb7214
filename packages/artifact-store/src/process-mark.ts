import { createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/**
 * Marks a scratch file as this process's, so that a later process can tell whether its writer still lives. A mark is
 * `<host tag>-<pid>-<start token>-<random>`: the host tag stands for one boot of one process-id namespace, the start
 * token for the moment the process started, so a process id that is used again (always 1 in a container) is not
 * mistaken for the old one.
 */
export function createMark(): string {
  const own = ownMark();
  return `${own.host}-${String(process.pid)}-${own.startToken}-${randomBytes(8).toString("hex")}`;
}

/**
 * How old a file of a process that can't be looked up (another container or machine on the same volume) must be before
 * it counts as left behind: 6 hours, well above the longest attempt (minutes).
 */
export const FOREIGN_STRAY_AGE_MS = 6 * 3_600_000;

/** True when the process that made the mark is gone; false for a live one, for our own, and for what is no mark. */
export function isStrayMark(mark: string, ageMs: number): boolean {
  const parts = /^([0-9a-f]{12})-([1-9][0-9]{0,9})-([0-9a-z]{1,20})-[0-9a-f]{16}$/.exec(mark);
  if (parts === null) return false;
  const [, host, pidText, token] = parts;
  const own = ownMark();
  if (host !== own.host) return ageMs > FOREIGN_STRAY_AGE_MS;
  const pid = Number(pidText);
  if (pid === process.pid) return token !== own.startToken;
  return existsSync("/proc/self/stat") ? startTokenOf(pid) !== token : !canSignal(pid);
}

type OwnMark = { readonly host: string; readonly startToken: string };
let memo: OwnMark | null = null;

function ownMark(): OwnMark {
  memo ??= {
    host: createHash("sha256").update(hostIdentity()).digest("hex").slice(0, 12),
    startToken: startTokenOf(process.pid) ?? Math.round(performance.timeOrigin).toString(36),
  };
  return memo;
}

function hostIdentity(): string {
  try {
    // One boot of one kernel, and the process-id namespace in it: within it, /proc tells who lives.
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
    return `${boot} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch {
    return hostname();
  }
}

/** Field 22 of /proc/<pid>/stat, clock ticks since boot; null where there is no such process or no /proc. */
function startTokenOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${String(pid)}/stat`, "utf8");
    // The command name (field 2) is in brackets and may itself hold spaces and brackets: count from the last one.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    // Z and X: dead, only not yet collected by its parent.
    return fields[0] === "Z" || fields[0] === "X" ? null : (fields[19] ?? null);
  } catch {
    return null;
  }
}

function canSignal(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
