import { readdirSync } from "node:fs";
import { join } from "node:path";
import { stopLeftover } from "@keble-scraper/local-servers";
import type { CliContext } from "../cli-context.ts";
import { launchNode } from "./launch-node.ts";
import { trimLog } from "./log-file.ts";
import { createProcessList } from "./process-list.ts";
import { type PlannedProcess, STOP_STAGES } from "./stack-plan.ts";
import type { StateDirectory } from "./state-directory.ts";
import { type Launched, supervise, type Supervisor } from "./supervisor.ts";

/** What `up` started, and in which order it ends. */
export type LocalStack = {
  /** Where logs and data are. */
  readonly state: StateDirectory;
  /** Does a step and prints how long it took; fails when the stack was told to stop meanwhile. */
  step<T>(name: string, work: () => Promise<T>): Promise<T>;
  /** Starts a server that everything else needs; it ends after everything else, the last one first. */
  startServer(name: string, launch: (signal: AbortSignal) => Promise<Launched>): Promise<void>;
  /** Starts the planned processes at once and resolves when all are ready. */
  startProcesses(plan: readonly PlannedProcess[], env: Readonly<Record<string, string | undefined>>): Promise<void>;
  /** Called between the processes and the servers when the stack ends. */
  onStop(close: () => Promise<void>): void;
  /** Gateway, workers (they drain), services, what `onStop` was given, servers. Idempotent. */
  stop(): Promise<void>;
};

/** What a process may take beyond its drain graces (the gateway's, then the others') before it is killed, in milliseconds. */
const STOP_MARGIN_MS = 10_000;
const LOG_CHECK_MS = 60_000;
/** Orphans of a killed `up` are draining already. */
const LEFTOVER_STOP = [
  { signal: "SIGTERM", waitMs: 5_000 },
  { signal: "SIGKILL", waitMs: 5_000 },
] as const;

/** Ends what a killed `up` left running in this state directory, and makes an empty stack. */
export async function openLocalStack(
  context: CliContext,
  state: StateDirectory,
  drainGraceMs: number,
): Promise<LocalStack> {
  const { print } = context;
  await stopLeftovers(state.run);
  const processes = createProcessList(state.processes);
  const servers: Supervisor[] = [];
  const staged: { readonly stage: PlannedProcess["stage"]; readonly supervisor: Supervisor }[] = [];
  const closers: (() => Promise<void>)[] = [];
  let stopping: Promise<void> | null = null;

  context.force.addEventListener("abort", () => {
    for (const { supervisor } of staged) supervisor.kill();
    for (const server of servers) server.kill();
  });
  const logCheck = setInterval(() => trimLogs(state.logs), LOG_CHECK_MS);
  logCheck.unref();

  function superviseProcess(planned: PlannedProcess, env: Readonly<Record<string, string | undefined>>): Supervisor {
    const { name } = planned;
    return supervise({
      name,
      print,
      onPid: (pid) => processes.set(planned.logicalNames, pid),
      launch: (onSpawn, signal) =>
        launchNode({
          name,
          self: context.self,
          args: planned.args,
          env: { ...env, ...planned.env },
          logFile: join(state.logs, `${name}.log`),
          recordFile: join(state.run, `${name}.json`),
          stopWithinMs: 2 * drainGraceMs + STOP_MARGIN_MS,
          onSpawn,
          signal,
        }),
    });
  }

  async function stopAll(): Promise<void> {
    clearInterval(logCheck);
    for (const stage of STOP_STAGES) {
      const members = staged.filter((entry) => entry.stage === stage);
      await Promise.all(members.map(({ supervisor }) => supervisor.stop()));
    }
    for (const close of closers) await close();
    for (const server of servers.toReversed()) await server.stop();
    processes.clear();
  }

  return {
    state,
    async step(name, work) {
      const from = performance.now();
      const value = await work();
      context.stop.throwIfAborted();
      print(`  ${name.padEnd(40)} ${((performance.now() - from) / 1_000).toFixed(2)} s`);
      return value;
    },
    async startServer(name, launch) {
      const supervisor = supervise({
        name,
        print,
        onPid: (pid) => processes.set([name], pid),
        launch: (_onSpawn, signal) => launch(signal),
      });
      servers.push(supervisor);
      await supervisor.start();
    },
    async startProcesses(plan, env) {
      for (const planned of plan) staged.push({ stage: planned.stage, supervisor: superviseProcess(planned, env) });
      await Promise.all(staged.map(({ supervisor }) => supervisor.start()));
    },
    onStop(close) {
      closers.push(close);
    },
    stop() {
      return (stopping ??= stopAll());
    },
  };
}

async function stopLeftovers(folder: string): Promise<void> {
  const records = readdirSync(folder).filter((file) => file.endsWith(".json"));
  await Promise.all(records.map((file) => stopLeftover(join(folder, file), LEFTOVER_STOP)));
}

function trimLogs(folder: string): void {
  for (const file of readdirSync(folder)) {
    if (file.endsWith(".log")) trimLog(join(folder, file));
  }
}
