import { Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import { addKeysCommands } from "./commands/keys.ts";
import { runMigrate } from "./commands/migrate.ts";
import { addResetCommand } from "./commands/reset.ts";
import { addReconcileCommand } from "./commands/reconcile.ts";
import { runProcesses } from "./commands/run-processes.ts";
import { runUp } from "./commands/up.ts";
import { isProcessKind, PROCESSES, type ProcessKind } from "./process-table.ts";
import { PROCESS_MODES, type ProcessMode } from "./stack/stack-plan.ts";

const FETCH_WORKERS_MAX = 32;
const WORKERS = {
  fetch: "worker-fetch",
  render: "worker-render",
  "proxy-health": "worker-proxy-health",
  callbacks: "worker-callbacks",
  maintenance: "worker-maintenance",
} as const;

type AdoptOption = { readonly adoptArtifacts?: true };
const ADOPT = new Option(
  "--adopt-artifacts",
  "say that the store which the settings name holds the artifacts of a database that does not know its store",
);

/** The command line of `keble-scraper`. Parsing it runs the command; a refused one throws CommanderError. */
export function createProgram(context: CliContext): Command {
  const program = new Command("keble-scraper")
    .description("Fetches public web resources under a policy that is a hard contract.")
    .addHelpText(
      "after",
      "\nEvery command but `up` requires SCRAPER_ENVIRONMENT; the settings page lists all settings.",
    )
    .exitOverride()
    .showHelpAfterError()
    .configureOutput({
      writeOut: (text) => context.print(text.trimEnd()),
      writeErr: (text) => context.printError(text.trimEnd()),
    });

  program
    .command("up")
    .description(
      "Start everything on this machine: Postgres, Redis, every service and worker; run a first job; stay up until Ctrl-C",
    )
    .addOption(new Option("--processes <mode>", "how many processes").choices(PROCESS_MODES).default("compact"))
    .option("--fetch-workers <n>", `fetch workers, 1 to ${FETCH_WORKERS_MAX}`, parseWorkers, 1)
    .option("--no-demo", "do not run the first job")
    .addOption(ADOPT)
    .action((options: { processes: ProcessMode; fetchWorkers: number; demo: boolean } & AdoptOption) =>
      runUp(context, {
        mode: options.processes,
        fetchWorkers: options.fetchWorkers,
        demo: options.demo ? "RUN" : "SKIP",
        rows: toRows(options),
      }),
    );

  for (const kind of ["gateway", "intake", "fetching", "artifacts", "callbacks", "retention", "beat"] as const) {
    program
      .command(kind)
      .description(PROCESSES[kind].help)
      .action(() => runProcesses(context, [kind]));
  }
  const worker = program.command("worker").description("Run one kind of worker");
  for (const [name, kind] of Object.entries(WORKERS)) {
    worker
      .command(name)
      .description(PROCESSES[kind].help)
      .action(() => runProcesses(context, [kind]));
  }
  program
    .command("together", { hidden: true })
    .description("Run several kinds in one process (what `up --processes=compact` does)")
    .argument("<kinds...>", "process kinds", parseKinds)
    .action((kinds: readonly ProcessKind[]) => runProcesses(context, kinds));
  program
    .command("migrate")
    .description(
      "Bring the database to this version's schema, give the services' role its rights, and claim the artifact store; safe to repeat",
    )
    .addOption(ADOPT)
    .action((options: AdoptOption) => runMigrate(context, { rows: toRows(options) }));
  addKeysCommands(program, context);
  addResetCommand(program, context);
  addReconcileCommand(program, context);
  return program;
}

function toRows({ adoptArtifacts }: AdoptOption): "REFUSE" | "ADOPT" {
  return adoptArtifacts === true ? "ADOPT" : "REFUSE";
}

function parseWorkers(text: string): number {
  const count = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > FETCH_WORKERS_MAX) throw new InvalidArgumentError(`It must be 1 to ${FETCH_WORKERS_MAX}.`);
  return count;
}

function parseKinds(text: string, before: readonly ProcessKind[] | undefined): readonly ProcessKind[] {
  if (!isProcessKind(text)) throw new InvalidArgumentError("There is no such kind.");
  return [...(before ?? []), text];
}
