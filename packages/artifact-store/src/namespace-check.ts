import type { StoreIdentity } from "./binary-store.ts";
import { parseOwnerMark } from "./owner-mark.ts";

/** The database's one row about the store its artifacts are in. `claimedAt` null: the claim was begun and not finished. */
export type StoredNamespace = {
  readonly kind: "LOCAL" | "S3";
  readonly prefix: string;
  readonly endpoint: string | null;
  readonly bucket: string | null;
  readonly directory: string | null;
  readonly owner: string;
  /** A lower-case UUID. */
  readonly claim: string;
  readonly claimedAt: Date | null;
};

/** Why a process may not open the store. Closed; the text of each says what differs. */
export const FENCE_REASONS = [
  "NOT_CLAIMED",
  "ROWS_WITHOUT_NAMESPACE",
  "NAMESPACE_INCOMPLETE",
  "OTHER_KIND",
  "OTHER_PREFIX",
  "OTHER_ENDPOINT",
  "OTHER_BUCKET",
  "OTHER_DIRECTORY",
  "OTHER_OWNER",
  "MARK_MISSING",
  "MARK_UNREADABLE",
  "MARK_OF_ANOTHER_OWNER",
  "MARK_OF_ANOTHER_CLAIM",
] as const;
export type FenceReason = (typeof FENCE_REASONS)[number];

/** A refusal: what differs, and what an operator does about it. Holds names and places, never a secret. */
export type FenceRefusal = { readonly reason: FenceReason; readonly text: string };

const RESTORE =
  "Set the store's settings back to the place that holds this database's artifacts; artifacts are not moved by a change of settings.";

/**
 * Compares the database's row with the store that the settings name and their owner; null: they are the same and the
 * claim is finished. `hasRows` says whether the database holds artifacts; it counts only when there is no row.
 */
export function checkNamespace(facts: {
  readonly identity: StoreIdentity;
  readonly owner: string;
  readonly row: StoredNamespace | null;
  readonly hasRows: boolean;
}): FenceRefusal | null {
  const { identity, owner, row } = facts;
  if (row === null) {
    return facts.hasRows
      ? refusal(
          "ROWS_WITHOUT_NAMESPACE",
          "The database holds artifacts, but not which store they are in. It was restored or edited in part: restore the whole of it.",
        )
      : refusal("NOT_CLAIMED", "No store was claimed for this database yet: run keble-scraper migrate.");
  }
  const place = checkPlace(identity, row);
  if (place !== null) return place;
  if (row.owner !== owner) {
    return refusal(
      "OTHER_OWNER",
      `SCRAPER_ARTIFACT_NAMESPACE_OWNER names ${quoted(owner)}, but the database's artifacts belong to ${quoted(row.owner)}. Set it back, or use another database.`,
    );
  }
  if (row.claimedAt === null) return incomplete("The claim of the store was begun and not finished");
  return null;
}

/** Compares what the store's own mark says with the database's row; null: it is the row's mark. `text` null: no mark. */
export function checkMark(row: Pick<StoredNamespace, "owner" | "claim">, text: string | null): FenceRefusal | null {
  if (text === null) {
    return refusal(
      "MARK_MISSING",
      "The store has no owner's mark below the prefix, though the database claimed it: it was emptied, or this is another bucket or directory of the same name. Restore the store.",
    );
  }
  const mark = parseOwnerMark(text);
  if (mark === null) {
    return refusal(
      "MARK_UNREADABLE",
      "The owner's mark below the prefix was not written by this product. Look at what else writes there, or use another prefix.",
    );
  }
  if (mark.owner !== row.owner) {
    return refusal(
      "MARK_OF_ANOTHER_OWNER",
      `The prefix in the store belongs to ${quoted(mark.owner)}, not to ${quoted(row.owner)}. Use another prefix for this database.`,
    );
  }
  if (mark.claim !== row.claim) {
    return refusal(
      "MARK_OF_ANOTHER_CLAIM",
      `The prefix in the store belongs to another database of the owner ${quoted(row.owner)}. Use another prefix and owner for this database, or restore the database that claimed it.`,
    );
  }
  return null;
}

function checkPlace(identity: StoreIdentity, row: StoredNamespace): FenceRefusal | null {
  if (row.kind !== identity.kind) return different("OTHER_KIND", "kind", identity.kind, row.kind);
  if (row.prefix !== identity.prefix) return different("OTHER_PREFIX", "prefix", identity.prefix, row.prefix);
  if (identity.kind === "LOCAL") {
    if (row.directory === null) return incomplete("The database's row about the store names no directory");
    return row.directory === identity.directory
      ? null
      : different("OTHER_DIRECTORY", "directory", identity.directory, row.directory);
  }
  if (row.endpoint === null || row.bucket === null) {
    return incomplete("The database's row about the store names no endpoint or no bucket");
  }
  if (row.endpoint !== identity.endpoint) {
    return different("OTHER_ENDPOINT", "endpoint", identity.endpoint, row.endpoint);
  }
  return row.bucket === identity.bucket ? null : different("OTHER_BUCKET", "bucket", identity.bucket, row.bucket);
}

function different(reason: FenceReason, what: string, here: string, there: string): FenceRefusal {
  return refusal(
    reason,
    `The settings name the ${what} ${quoted(here)}, but the database's artifacts are in the ${what} ${quoted(there)}. ${RESTORE}`,
  );
}

function incomplete(what: string): FenceRefusal {
  return refusal("NAMESPACE_INCOMPLETE", `${what}: run keble-scraper migrate.`);
}

/** The row is our own, but its text goes to a terminal: one line, bounded. */
function quoted(value: string): string {
  return JSON.stringify(value.slice(0, 300));
}

function refusal(reason: FenceReason, text: string): FenceRefusal {
  return { reason, text };
}
