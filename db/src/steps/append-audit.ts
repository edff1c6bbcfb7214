import { v7 as uuidv7 } from "uuid";
import type { Tx } from "../database.ts";
import { toStorableJson } from "../to-storable-text.ts";

/** Who acts: an API key's id, or `system:<part>` for the service itself. */
export type Actor = { readonly actor: string; readonly requestId: string | null };

/** One audited action. `subject` names the row, such as `api-key:<id>`; `details` never hold a secret or a body. */
export type AuditEntry = {
  readonly id?: string;
  readonly action: string;
  readonly by: Actor;
  readonly callerId: string | null;
  readonly subject: string;
  readonly details?: Readonly<Record<string, string | number | boolean | null>>;
};

/** The age at which an audit row may be purged when its writer was told none, in days. */
export const AUDIT_RETENTION_DAYS = 400;

/**
 * Appends an audit row in the transaction `sql` of the action it tells of: neither is there without the other. The row may
 * be purged `retentionDays` from now, fractions included.
 */
export async function appendAudit(sql: Tx, entry: AuditEntry, retentionDays = AUDIT_RETENTION_DAYS): Promise<string> {
  const id = entry.id ?? uuidv7();
  await sql`
    insert into audit_events (id, caller_id, action, actor, subject, request_id, details, expires_at)
    values (${id}, ${entry.callerId}, ${entry.action}, ${entry.by.actor}, ${entry.subject}, ${entry.by.requestId},
            ${sql.json(toStorableJson(entry.details ?? {}))}, clock_timestamp() + make_interval(secs => ${retentionDays}::float8 * 86400))`;
  return id;
}
