import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** What tells one process from a later one with the same id. */
export type ProcessDescription = {
  /** The command line, words joined by a space. */
  readonly command: string;
  /** Boot and start time; two processes never share both this and the id. */
  readonly startId: string;
};

/** The process with this id, or null when there is none, or only a zombie. Reads /proc, else asks `ps`. */
export function describeProcess(pid: number): ProcessDescription | null {
  if (!Number.isSafeInteger(pid) || pid <= 0) return null;
  return process.platform === "linux" ? fromProc(pid) : fromPs(pid);
}

/** Whether `pid` is still the process that had this start id. */
export function isSameProcess(pid: number, startId: string): boolean {
  return describeProcess(pid)?.startId === startId;
}

function fromProc(pid: number): ProcessDescription | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may hold spaces and parentheses itself: fields count from the last one. proc(5): 3 state, 22 starttime.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, ticks] = [fields[0], fields[19]];
    if (state === undefined || ticks === undefined || state === "Z" || state === "X") return null;
    const boot = readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
    const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").join(" ").trim();
    return { command, startId: `${boot}:${ticks}` };
  } catch {
    return null;
  }
}

function fromPs(pid: number): ProcessDescription | null {
  const { status, stdout } = spawnSync("ps", ["-ww", "-o", "stat=,lstart=,command=", "-p", String(pid)], {
    encoding: "utf8",
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
  });
  // `lstart` is five words: Mon Nov 30 16:55:01 2026.
  const found = /^(\S+)\s+(\S+\s+\S+\s+\S+\s+\S+\s+\S+)\s+(.*)$/m.exec(status === 0 ? stdout.trim() : "");
  const [, state, started, command] = found ?? [];
  if (state === undefined || started === undefined || command === undefined || state.startsWith("Z")) return null;
  return { command, startId: started.replaceAll(/\s+/g, " ") };
}
