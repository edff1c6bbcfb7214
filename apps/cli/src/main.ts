import { createLogger } from "@keble-scraper/service";
import { CommanderError } from "commander";
import type { CliContext } from "./cli-context.ts";
import { CliError, EXIT_CODES } from "./cli-error.ts";
import { createProgram } from "./program.ts";
import { READY_MESSAGE } from "./stack/launch-node.ts";

/** A terminal's Ctrl-C reaches us directly and once more through npm: what follows within this time is the same press. */
const SAME_PRESS_MS = 500;
const SIGNAL_NUMBERS = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 } as const;

const stop = new AbortController();
const force = new AbortController();
let firstSignalAt: number | null = null;

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => onSignal(signal));
// The launcher's channel closes when it ends, however it ends: a process without its launcher drains.
process.on("disconnect", () => stop.abort());
process.on("unhandledRejection", onFault);
process.on("uncaughtException", onFault);
// A reader that went away (`up | head`) is no reason to end.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

// The S3 client would print which versions of Node its later releases want. Its version is pinned here: no user's business.
process.env["AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED"] ??= "true";

const context: CliContext = {
  env: { ...process.env },
  stop: stop.signal,
  force: force.signal,
  print: (line) => void process.stdout.write(`${line}\n`),
  printError: (line) => void process.stderr.write(`${line}\n`),
  ready: () => void process.send?.(READY_MESSAGE),
  self: { execPath: process.execPath, execArgv: process.execArgv, script: process.argv[1] ?? "" },
};

try {
  await createProgram(context).parseAsync(process.argv);
  process.exit(0);
} catch (error) {
  process.exit(exitCodeOf(error));
}

function onSignal(signal: keyof typeof SIGNAL_NUMBERS): void {
  if (firstSignalAt === null) {
    firstSignalAt = performance.now();
    stop.abort();
    return;
  }
  if (performance.now() - firstSignalAt < SAME_PRESS_MS) return;
  force.abort();
  process.exit(128 + SIGNAL_NUMBERS[signal]);
}

function exitCodeOf(error: unknown): number {
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODES.USAGE;
  if (error instanceof CliError) {
    context.printError(error.message);
    return EXIT_CODES[error.reason];
  }
  logFault(error);
  return EXIT_CODES.FAULT;
}

function onFault(error: unknown): void {
  logFault(error);
  force.abort();
  process.exit(EXIT_CODES.FAULT);
}

/** A fatal line is written before the call returns. */
function logFault(error: unknown): void {
  createLogger({ name: "keble-scraper", level: "fatal" }).fatal({ err: error }, "process.faulted");
}
