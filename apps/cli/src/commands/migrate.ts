import { migrate, NewerSchemaError } from "@keble-scraper/db";
import { claimArtifactStore } from "../claim-artifact-store.ts";
import type { CliContext } from "../cli-context.ts";
import { CliError } from "../cli-error.ts";
import { readSettings, UNREAD_SETTINGS } from "../read-settings.ts";
import { toDatabaseError } from "../to-database-error.ts";

/** What `migrate` does with artifacts of a database that does not say which store they are in. */
export type MigrateOptions = { readonly rows: "REFUSE" | "ADOPT" };

/**
 * `keble-scraper migrate`: any number may run at once. Says how many migrations it applied, then claims the artifact store for the
 * database, or finds that it is claimed.
 */
export async function runMigrate(context: CliContext, { rows }: MigrateOptions): Promise<void> {
  const settings = readSettings(context, { base: UNREAD_SETTINGS });
  const { migrationUrl, url: appUrl } = settings.database;
  const toError = (error: unknown) =>
    toDatabaseError(error, migrationUrl === appUrl ? "SCRAPER_DATABASE_URL" : "SCRAPER_MIGRATION_DATABASE_URL");
  const applied = await migrateDatabase({ migrationUrl, appUrl }).catch((error: unknown) => {
    throw toError(error);
  });
  sayIfRolesAreOne(context, { migrationUrl, appUrl });
  context.print(applied === 0 ? "The database is up to date" : `Applied ${applied} migrations`);
  await claimArtifactStore(context, settings, rows).catch((error: unknown) => {
    throw toError(error);
  });
}

/** Tells the operator when no right of the services' role protects what must never change. */
export function sayIfRolesAreOne(
  context: Pick<CliContext, "print">,
  urls: { readonly migrationUrl: string; readonly appUrl: string },
): void {
  if (new URL(urls.migrationUrl).username !== new URL(urls.appUrl).username) return;
  context.print("Both database roles are one: only triggers protect the ledger of attempts and the audit");
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
