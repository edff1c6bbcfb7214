import { spawn } from "node:child_process";

/** How a command ended. `seconds` is wall time; a command that could not start or was killed has code 1. */
export type CommandResult = { readonly code: number; readonly seconds: number; readonly timedOut: boolean };

type CommandOptions = {
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
  /** "inherit" shows the command's output as it comes, "ignore" drops it. */
  readonly output: "inherit" | "ignore";
  /** After this long the command and all that it started are killed. Absent: never. */
  readonly timeoutMs?: number;
};

/** Runs `command` to its end. Never throws for a command that fails. */
export async function runCommand(command: readonly string[], options: CommandOptions): Promise<CommandResult> {
  const [file = "", ...args] = command;
  const started = performance.now();
  const bounded = options.timeoutMs !== undefined;
  const child = spawn(file, args, {
    cwd: options.cwd,
    env: options.env ?? process.env,
    stdio: ["ignore", options.output, options.output],
    // A bounded command leads its own group, so that its timeout reaches servers it has started too.
    detached: bounded,
  });
  let timedOut = false;
  const killGroup = (): void => {
    if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
  };
  const interrupted = (): void => {
    killGroup();
    process.exit(130);
  };
  const timer = bounded
    ? setTimeout(() => {
        timedOut = true;
        killGroup();
      }, options.timeoutMs)
    : undefined;
  if (bounded) process.once("SIGINT", interrupted).once("SIGTERM", interrupted);
  const code = await new Promise<number>((resolve) => {
    child.once("error", (error) => {
      console.error(`${file}: ${error.message}`);
      resolve(1);
    });
    child.once("close", (exitCode) => resolve(exitCode ?? 1));
  });
  clearTimeout(timer);
  process.off("SIGINT", interrupted).off("SIGTERM", interrupted);
  return { code, seconds: (performance.now() - started) / 1_000, timedOut };
}
