import { migrate, NewerSchemaError } from "@keble-scraper/db";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import { toDatabaseError } from "../to-database-error.ts";

/** `keble-scraper migrate`: any number may run at once. Says how many migrations it applied. */
export async function runMigrate(context: CliContext): Promise<void> {
  const { database } = readSettings(context, { base: UNREAD_SETTINGS });
  const { migrationUrl, url: appUrl } = database;
  const applied = await migrateDatabase({ migrationUrl, appUrl }).catch((error: unknown) => {
    throw toDatabaseError(error, migrationUrl === appUrl ? "SCRAPER_DATABASE_URL" : "SCRAPER_MIGRATION_DATABASE_URL");
  });
  if (new URL(migrationUrl).username === new URL(appUrl).username) {
    context.print("Both database roles are one: only triggers protect the ledger of attempts and the audit");
  }
  context.print(applied === 0 ? "The database is up to date" : `Applied ${applied} migrations`);
}

/** Migrates and returns how many migrations were applied; a database of a newer version is STATE_UNUSABLE. */
export async function migrateDatabase(urls: { migrationUrl: string; appUrl: string }): Promise<number> {
  try {
    const { applied } = await migrate(urls);
    return applied;
  } catch (error) {
    if (error instanceof NewerSchemaError) {
      throw new CliError(
        "STATE_UNUSABLE",
        `${error.message} It was used by a newer Keble Scraper; nothing was changed.`,
        {
          cause: error,
        },
      );
    }
    throw error;
  }
}
