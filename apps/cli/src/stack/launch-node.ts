import { spawn } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { recordProcess, removeProcessRecord } from "@keble-scraper/local-servers";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { rotateLog, tailLog } from "./log-file.ts";
import type { Launched } from "./supervisor.ts";

/** The message that a process of ours sends its launcher once it is ready. */
export const READY_MESSAGE = "keble-scraper.ready";

const READY_WITHIN_MS = 60_000;

/**
 * Starts this program again with other arguments, detached from the terminal, and resolves when it says it is ready. It
 * drains by itself when this process is gone, for then its channel closes. Output goes to the log file, mode 0600.
 */
export async function launchNode(options: {
  readonly name: string;
  readonly self: CliContext["self"];
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logFile: string;
  readonly recordFile: string;
  /** How long it may take to end after SIGTERM, in milliseconds; then it is killed. */
  readonly stopWithinMs: number;
  readonly onSpawn: (pid: number) => void;
  readonly signal: AbortSignal;
}): Promise<Launched> {
  const { self, name } = options;
  const logFrom = rotateLog(options.logFile);
  const log = openSync(options.logFile, "a", 0o600);
  const child = spawn(self.execPath, [...self.execArgv, self.script, ...options.args], {
    env: { ...options.env },
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
  });
  closeSync(log);
  const ended = new Promise<string>((resolve) => {
    child.once("error", (error) => resolve(error.message));
    child.once("exit", (code, signal) => resolve(signal ?? `exit ${code ?? "unknown"}`));
  });
  const { pid } = child;
  if (pid === undefined) throw new CliError("NOT_READY", `${name} can't be started: ${await ended}`);
  recordProcess(options.recordFile, name, pid);
  options.onSpawn(pid);
  void ended.then(() => removeProcessRecord(options.recordFile));

  const kill = () => void child.kill("SIGKILL");
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(kill, options.stopWithinMs);
    await ended;
    clearTimeout(timer);
  };

  const timeout = AbortSignal.any([options.signal, AbortSignal.timeout(READY_WITHIN_MS)]);
  const ready = new Promise<"ready">((resolve) => {
    child.on("message", (message) => {
      if (message === READY_MESSAGE) resolve("ready");
    });
  });
  const late = new Promise<"late">((resolve) =>
    timeout.addEventListener("abort", () => resolve("late"), { once: true }),
  );
  const outcome = await Promise.race([ready, late, ended]);
  if (outcome !== "ready") {
    await stop();
    const why = outcome === "late" ? `not ready within ${READY_WITHIN_MS / 1_000} s` : outcome;
    throw new CliError(
      "NOT_READY",
      `${name} did not start (${why}). The end of ${options.logFile}:\n${tailLog(options.logFile, logFrom)}`,
    );
  }
  return { pid, ended, stop, kill };
}
