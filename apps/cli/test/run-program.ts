import { createProgram } from "../src/program.ts";

/** A run of a command in this process: what it printed, on both streams, and how it ends. */
export type ProgramRun = {
  /** In order; complete once `ended` has settled. */
  readonly lines: readonly string[];
  /** Rejects with the error that a shell would see as an exit code. */
  readonly ended: Promise<void>;
};

/** Runs `keble-scraper` with these arguments and no environment but this one. No signal comes. */
export function runProgram(args: readonly string[], env: Readonly<Record<string, string>>): ProgramRun {
  const lines: string[] = [];
  const program = createProgram({
    env,
    stop: new AbortController().signal,
    force: new AbortController().signal,
    print: (line) => void lines.push(line),
    printError: (line) => void lines.push(line),
    ready: () => undefined,
    self: { execPath: process.execPath, execArgv: [], script: "" },
  });
  return { lines, ended: program.parseAsync(["node", "keble-scraper", ...args]).then(() => undefined) };
}

/** The same, run to its end: what it printed as one text. */
export async function textOfProgram(args: readonly string[], env: Readonly<Record<string, string>>): Promise<string> {
  const { ended, lines } = runProgram(args, env);
  await ended;
  return lines.join("\n");
}
