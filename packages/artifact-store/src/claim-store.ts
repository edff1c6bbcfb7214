import type { BinaryStore, StoreIdentity } from "./binary-store.ts";
import { FenceRefused } from "./fence.ts";
import { checkMark, checkNamespace, type FenceRefusal, type StoredNamespace } from "./namespace-check.ts";
import { formatOwnerMark } from "./owner-mark.ts";

/** What a claim came to. */
export type StoreClaim = { readonly outcome: "CLAIMED" | "UNCHANGED"; readonly row: StoredNamespace };

/**
 * Claims a started store for a database, step by step so that a crash between any two is mended by the next run: the
 * database's row (incomplete), the owner's mark in the store, read back, the row complete. Throws `FenceRefused`, having
 * changed nothing in the store, when row, settings and mark are not one another's; a claim that is finished is only compared.
 */
export async function claimStore(of: {
  readonly store: Pick<BinaryStore, "identity" | "readOwner" | "claimOwner">;
  /** The owner that the settings name. */
  readonly owner: string;
  /** The database's row; written now, incomplete, when there is none. Null: it holds artifacts, and no row. */
  begin(place: StoreIdentity): Promise<StoredNamespace | null>;
  /** Completes the row of that claim; false when the row is another one by now. */
  complete(claim: string): Promise<boolean>;
}): Promise<StoreClaim> {
  const { store, owner } = of;
  const identity = store.identity();
  const row = await of.begin(identity);
  const refusal = checkNamespace({ identity, owner, row, hasRows: row === null });
  if (row === null) throw new FenceRefused(refusal ?? RACED);
  const isUnfinished = row.claimedAt === null;
  if (refusal !== null && !(isUnfinished && refusal.reason === "NAMESPACE_INCOMPLETE")) throw new FenceRefused(refusal);
  const mark = isUnfinished ? await store.claimOwner(formatOwnerMark(row)) : await store.readOwner();
  const difference = checkMark(row, mark);
  if (difference !== null) throw new FenceRefused(difference);
  if (!isUnfinished) return { outcome: "UNCHANGED", row };
  if (!(await of.complete(row.claim))) throw new FenceRefused(RACED);
  return { outcome: "CLAIMED", row };
}

const RACED: FenceRefusal = {
  reason: "NAMESPACE_INCOMPLETE",
  text: "Another store was claimed for this database at the same time. Look at the settings of whoever ran it, then run keble-scraper migrate again.",
};
