import { randomBytes } from "node:crypto";
import type { Command } from "commander";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import { toDatabaseError } from "../to-database-error.ts";
import { toStoreError } from "../to-store-error.ts";
import { withDatabase } from "../with-database.ts";
import { applyReset } from "./reset-apply.ts";
import { type ResetFlags, CAMPAIGN } from "./reset-evidence.ts";
import { planAndReport } from "./reset-plan.ts";
import { toRedisError } from "./reset-redis.ts";

/** A table may be read whole, and a batch of jobs takes its attempts along. */
const STATEMENT_TIMEOUT_MS = 120_000;
/** One holds the turn, one works. */
const CONNECTIONS = 2;

type ResetOptions = ResetFlags & { readonly apply?: true; readonly json?: true };

/** Adds `reset`: a dry run, unless `--apply` brings every piece of evidence. */
export function addResetCommand(program: Command, context: CliContext): void {
  program
    .command("reset")
    .description(
      "Empty a deployment before its first release: a dry run that reports, or with --apply and all its evidence, in development and test",
    )
    .option("--json", "print the report as JSON")
    .option("--apply", "delete: wants each of the following")
    .option("--campaign <name>", "the reset's name, 1 to 64 of a-z 0-9 . -; a dry run without one makes it up")
    .option("--writer-stop <time>", "since when nothing writes, RFC 3339")
    .option("--database <name@id>", "the database, as the dry run printed it")
    .option("--redis <prefix>", "the namespace in Redis, as the dry run printed it")
    .option("--artifact-owner <owner>", "whose the artifact store is")
    .option("--snapshot <file>", "a backup of the database, written after the writers stopped")
    .option("--inventory <sha256>", "of the stored objects, as the dry run printed it")
    .option("--audit <id>", "the audit row of the dry run")
    .action((options: ResetOptions) => runReset(context, options));
}

async function runReset(context: CliContext, { apply, json, ...flags }: ResetOptions): Promise<void> {
  const { SCRAPER_REDIS_URL: _read, ...base } = UNREAD_SETTINGS;
  const settings = readSettings(context, { base });
  const { environment, database } = settings;
  if (apply === true && environment !== "development" && environment !== "test") {
    throw new CliError("USAGE", `--apply is for development and test, not for ${environment}. Nothing was touched.`);
  }
  if (apply === undefined && flags.campaign !== undefined && !CAMPAIGN.test(flags.campaign)) {
    throw new CliError("USAGE", "--campaign must be 1 to 64 of a-z 0-9 . -");
  }
  try {
    await withDatabase(
      database.migrationUrl,
      ({ commands: sql }) =>
        apply === true
          ? applyReset({ context, settings, sql }, flags)
          : planAndReport({ context, settings, sql }, flags.campaign ?? newCampaign(), json === true ? "JSON" : "TEXT"),
      { statementTimeoutMs: STATEMENT_TIMEOUT_MS, commandConnections: CONNECTIONS },
    );
  } catch (error) {
    const isOneRole = database.migrationUrl === database.url;
    const setting = isOneRole ? "SCRAPER_DATABASE_URL" : "SCRAPER_MIGRATION_DATABASE_URL";
    throw toDatabaseError(toStoreError(toRedisError(error)), setting);
  }
}

function newCampaign(): string {
  return `reset-${new Date().toISOString().slice(0, 10)}-${randomBytes(3).toString("hex")}`;
}
