import type { Sql } from "../../database.ts";
import { findNamespace } from "../../queries/find-namespace.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";
import { toDetails } from "./claim-namespace.ts";

/**
 * Finishes a claim whose mark was read back from the store, audited as `store.claimed`. False: the row is no longer this claim's.
 * Finishing a finished one changes nothing and is true.
 */
export async function completeNamespace(sql: Sql, claim: string, by: Actor, retentionDays?: number): Promise<boolean> {
  return sql.begin(async (tx) => {
    const { count } = await tx`
      update store_namespace set claimed_at = clock_timestamp() where claim = ${claim} and claimed_at is null`;
    const row = await findNamespace(tx);
    if (row?.claim !== claim) return false;
    if (count === 1) {
      const subject = `store:${claim}`;
      await appendAudit(
        tx,
        { action: "store.claimed", by, callerId: null, subject, details: toDetails(row) },
        retentionDays,
      );
    }
    return true;
  });
}
