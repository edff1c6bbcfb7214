import { FenceRefused, StoreUnavailable } from "@keble-scraper/artifact-store";
import { CliError } from "./cli-error.ts";

/** What a command line ends with when a store is refused or away; any other error comes back as it is. */
export function toStoreError(error: unknown): unknown {
  if (error instanceof FenceRefused) {
    const hint =
      error.reason === "ROWS_WITHOUT_NAMESPACE"
        ? " When the settings do name the store that holds them (the database comes from an earlier version), say so once: `keble-scraper migrate --adopt-artifacts` (or `keble-scraper up --adopt-artifacts`)."
        : "";
    return new CliError("STORE_REFUSED", `${error.reason}: ${error.message}${hint}`, { cause: error });
  }
  if (error instanceof StoreUnavailable) {
    return new CliError(
      "SERVER_MISSING",
      `The artifact store can't be asked (${error.code}). Nothing is lost: run this again when it answers.`,
      { cause: error },
    );
  }
  return error;
}
