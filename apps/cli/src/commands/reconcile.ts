import { openReconciliation, type Reconciliation } from "@keble-scraper/db/commands/artifacts";
import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { parseIsoTime } from "../parse-iso-time.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import type { ParseLine } from "../reconcile/log-line.ts";
import { openLog, STDIN } from "../reconcile/open-log.ts";
import { parseLocalLine } from "../reconcile/parse-local-line.ts";
import { parseMinioLine } from "../reconcile/parse-minio-line.ts";
import { createOssParser } from "../reconcile/parse-oss-line.ts";
import { parseS3Line } from "../reconcile/parse-s3-line.ts";
import { type ReportEntry, toJsonLine, toTextLines } from "../reconcile/render-report.ts";
import { type LogTally, type StorePlace, takeLogs } from "../reconcile/take-logs.ts";
import { toDatabaseError } from "../to-database-error.ts";
import { withDatabase } from "../with-database.ts";

const FORMATS = ["s3", "oss", "minio", "local"] as const;
type Format = (typeof FORMATS)[number];

type Options = {
  readonly format: Format;
  readonly since?: Date;
  readonly until?: Date;
  readonly skewSeconds: number;
  readonly utcOffset: number;
  readonly json?: true;
  readonly verbose?: true;
};

/** A query over all reads of a large log may take minutes. */
const STATEMENT_TIMEOUT_MS = 600_000;
/** Lines that can't be read are counted, and as many of them are shown. */
const MALFORMED_SHOWN_MAX = 20;
/** A store's clock against the database's, in seconds: SigV4 itself allows 900. */
const SKEW_SECONDS = 60;
const SKEW_SECONDS_MAX = 86_400;

/** Adds `reconcile`: it holds a store's own access log against the audit of downloads, and needs no running service. */
export function addReconcileCommand(program: Command, context: CliContext): void {
  program
    .command("reconcile")
    .description("Hold the store's access log against the audit of downloads; ends with 1 when they do not agree")
    .argument("[files...]", `access logs, .gz too; ${STDIN}: standard input`, [STDIN])
    .addOption(new Option("--format <format>", "whose log it is").choices(FORMATS).makeOptionMandatory())
    .option("--since <time>", "leave out reads and links before this time, RFC 3339", parseTime)
    .option("--until <time>", "leave out reads and links from this time on, RFC 3339", parseTime)
    .option("--skew-seconds <n>", "how far the store's clock may be off", parseSkew, SKEW_SECONDS)
    .option("--utc-offset <±hh:mm>", "the zone of times that have none (OSS)", parseOffset, 0)
    .option("--json", "print one JSON object a line")
    .option("--verbose", "list the links that nobody used, too")
    .action((files: readonly string[], options: Options) => runReconcile(context, files, options));
}

async function runReconcile(context: CliContext, files: readonly string[], options: Options): Promise<void> {
  const { artifacts, database } = readSettings(context, { base: UNREAD_SETTINGS });
  const { store } = artifacts;
  if ((store.kind === "LOCAL") !== (options.format === "local")) {
    const kind = store.kind === "LOCAL" ? "local store" : "bucket";
    throw new CliError("USAGE", `The settings name a ${kind}, which has no log of the format ${options.format}.`);
  }
  const print = (entry: ReportEntry): void => {
    for (const line of options.json === true ? [toJsonLine(entry)] : toTextLines(entry)) context.print(line);
  };
  const place = store.kind === "LOCAL" ? null : store;
  const { log, mismatches } = await withDatabase(
    database.url,
    async ({ commands }) => {
      const reconciliation = await openReconciliation(commands);
      try {
        return await reconcile(reconciliation, files, place, { options, print, stop: context.stop });
      } finally {
        await reconciliation.close();
      }
    },
    { statementTimeoutMs: STATEMENT_TIMEOUT_MS },
  ).catch((error: unknown) => {
    throw toDatabaseError(error, "SCRAPER_DATABASE_URL");
  });
  if (log.lines > 0 && log.malformed === log.lines) {
    throw new CliError("USAGE", `No line of the log is of the format ${options.format}: nothing was compared.`);
  }
  if (mismatches > 0) throw new CliError("MISMATCH", "The access log and the audit do not agree.");
}

/** Prints the report; what became of the log's lines, and how many reads do not agree with the audit. */
async function reconcile(
  reconciliation: Reconciliation,
  files: readonly string[],
  place: StorePlace,
  { options, print, stop }: { options: Options; print: (entry: ReportEntry) => void; stop: AbortSignal },
): Promise<{ log: LogTally; mismatches: number }> {
  let shown = 0;
  const log = await takeLogs(
    files.map((name) => ({ name, bytes: openLog(name, stop) })),
    reconciliation,
    {
      parse: parserOf(options),
      place,
      since: options.since ?? null,
      until: options.until ?? null,
      onMalformed(where, reason) {
        shown += 1;
        if (shown <= MALFORMED_SHOWN_MAX) print({ type: "malformed", place: where, reason });
      },
    },
  );
  let mismatches = 0;
  for await (const mismatch of reconciliation.listMismatches(options.skewSeconds * 1000)) {
    mismatches += 1;
    print({ type: "mismatch", mismatch });
  }
  const window = windowOf(options, log);
  if (window !== null && options.verbose === true) {
    for await (const link of reconciliation.listUnused(window)) print({ type: "unused", link });
  }
  const links = window === null ? null : { ...(await reconciliation.countLinks(window)), ...window };
  print({ type: "summary", log, links, mismatches });
  return { log, mismatches };
}

/** Without `--since` and `--until` the links are those signed while the log was written. */
function windowOf(options: Options, log: LogTally): { since: Date; until: Date } | null {
  const since = options.since ?? log.firstAt;
  // Times of a log are often whole seconds: the last of them is in.
  const until = options.until ?? (log.lastAt === null ? null : new Date(log.lastAt.getTime() + 1_000));
  return since === null || until === null ? null : { since, until };
}

function parserOf({ format, utcOffset }: Options): ParseLine {
  switch (format) {
    case "s3":
      return parseS3Line;
    case "oss":
      return createOssParser(utcOffset);
    case "minio":
      return parseMinioLine;
    case "local":
      return parseLocalLine;
  }
}

function parseTime(text: string): Date {
  const time = parseIsoTime(text);
  if (time === null) throw new InvalidArgumentError("It must be such as 2026-11-30T17:00:00Z.");
  return time;
}

function parseSkew(text: string): number {
  const seconds = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (seconds < 0 || seconds > SKEW_SECONDS_MAX) throw new InvalidArgumentError("It must be 0 to 86400.");
  return seconds;
}

/** Minutes from UTC. */
function parseOffset(text: string): number {
  const [, sign, hours, minutes] = /^([+-])([01]\d):([0-5]\d)$/.exec(text) ?? [];
  if (sign === undefined) throw new InvalidArgumentError("It must be such as +08:00.");
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes));
}
