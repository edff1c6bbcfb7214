import { readFileSync, writeFileSync } from "node:fs";
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
 * (FOLDER_IN_USE when it lives, or when that Postgres is not one of ours). `directory` is a real path. A pid in `postmaster.pid` that another program got after a reboot, which Postgres would
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
  if (!found.command.includes("postgres")) {
    writeFileSync(pidFile, [NO_PID, ...lines.slice(1)].join("\n"));
    return;
  }
  if (!found.command.includes(` -D ${directory} `)) {
    throw new LocalServerError(
      "FOLDER_IN_USE",
      `${pidFile} names the process ${pid}, a Postgres that was not started from here. Stop it, or remove that file if it serves another folder.`,
    );
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

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    return [];
  }
}
