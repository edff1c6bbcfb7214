import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { LocalServerError } from "./local-server-error.ts";
import { describeProcess, isSameProcess } from "./process-description.ts";
import { readProcessRecord, stopPid } from "./process-record.ts";
import type { StopStep } from "./running-server.ts";

/** Fast shutdown (sessions are cut, a checkpoint is written), then immediate, then what nothing survives. */
export const POSTGRES_STOP: readonly StopStep[] = [
  { signal: "SIGINT", waitMs: 15_000 },
  { signal: "SIGQUIT", waitMs: 5_000 },
  { signal: "SIGKILL", waitMs: 5_000 },
];

/** Over any pid_max (2^22), so that no process ever has it. */
const NO_PID = "2147483647";

/**
 * Makes `directory` startable after a crash. A Postgres that still serves it is shut down when its owner is dead
 * (FOLDER_IN_USE when it lives). A pid in `postmaster.pid` that another program got after a reboot, which Postgres would
 * take for itself, is replaced by one that nobody can have; the shared memory id in that file stays, so Postgres still
 * refuses while orphaned backends of the old server live.
 */
export async function clearStalePostmaster(directory: string, recordFile: string): Promise<void> {
  const pidFile = `${directory}/postmaster.pid`;
  const lines = readLines(pidFile);
  const pid = Number(lines[0]);
  if (!Number.isSafeInteger(pid) || pid <= 0) return;
  const found = describeProcess(pid);
  if (found === null) return;
  if (!isPostgresOf(found.command, directory)) {
    writeFileSync(pidFile, [NO_PID, ...lines.slice(1)].join("\n"));
    return;
  }
  const owner = readProcessRecord(recordFile)?.owner;
  if (owner !== undefined && isSameProcess(owner.pid, owner.startId)) {
    throw new LocalServerError(
      "FOLDER_IN_USE",
      `Postgres (pid ${pid}) already serves ${directory} for the process ${owner.pid}`,
    );
  }
  await stopPid(pid, found.startId, POSTGRES_STOP);
}

/** Our own start line: the binary, then `-D <directory>`. */
function isPostgresOf(command: string, directory: string): boolean {
  return command.includes("postgres") && command.includes(` -D ${resolve(directory)} `);
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
}
