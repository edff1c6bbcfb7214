import {
  failed,
  type LocalFailure,
  localFailure,
  ok,
  type Pin,
  type PutPinResult,
  type Result,
} from "@keble-scraper/contract";
import type { Fragment, Sql, Tx } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/** A pin as its owner wants it. `expiresAt` null: indefinitely; in the past: released. `callerId` null: any caller's artifact. */
export type NewPin = {
  readonly artifactId: string;
  readonly callerId: string | null;
  readonly owner: string;
  readonly retentionRevision: number;
  readonly expiresAt: Date | null;
};

const OTHER_EXPIRY = "This revision is there already, with another expiry. A change needs a newer revision.";

/**
 * Keeps or releases an artifact for one owner, with an audit row in its transaction. A newer revision replaces the policy; an
 * older one, or the same again, changes nothing (`applied` false); the same with another expiry (by the millisecond) is a
 * CONFLICT. NOT_FOUND: no such artifact of that caller. GONE: it is deleted, whatever the revision.
 *
 * The artifact's lock orders all pins of it, and a pin and a deletion: one waits for the other and then sees what it did.
 */
export async function putPin(
  sql: Sql,
  pin: NewPin,
  by: Actor,
  retentionDays?: number,
): Promise<Result<PutPinResult, LocalFailure>> {
  const { artifactId, callerId, expiresAt, owner, retentionRevision } = pin;
  return sql.begin(async (tx) => {
    const [artifact] = await tx<{ state: string; caller_id: string }[]>`
      select state, caller_id from artifacts
      where id = ${artifactId} and (${callerId}::text is null or caller_id = ${callerId})
      for no key update`;
    if (artifact === undefined) return failed(localFailure("NOT_FOUND"));
    if (artifact.state !== "AVAILABLE") return failed(localFailure("GONE"));

    const [before] = await tx<PinRow[]>`
      select ${pinColumns(tx)}, expires_at is not distinct from ${expiresAt}::timestamptz as is_same
      from artifact_pins where artifact_id = ${artifactId} and owner = ${owner}`;
    if (before !== undefined && Number(before.retention_revision) >= retentionRevision) {
      const isOther = Number(before.retention_revision) === retentionRevision && before.is_same !== true;
      return isOther
        ? failed(localFailure("CONFLICT", { message: OTHER_EXPIRY }))
        : ok({ pin: toPin(before), applied: false });
    }

    const [after] = await tx<[PinRow & { is_released: boolean }]>`
      insert into artifact_pins (artifact_id, owner, retention_revision, expires_at)
      values (${artifactId}, ${owner}, ${retentionRevision}, ${expiresAt})
      on conflict (artifact_id, owner) do update
      set retention_revision = excluded.retention_revision, expires_at = excluded.expires_at, updated_at = clock_timestamp()
      returning ${pinColumns(tx)}, expires_at is not null and expires_at <= clock_timestamp() as is_released`;
    // A hold may end earlier than it was going to: the artifact is looked at then.
    await tx`
      update artifacts
      set pin_count = pin_count + ${before === undefined ? 1 : 0},
          review_at = least(review_at, greatest(${expiresAt}::timestamptz, date_trunc('milliseconds', clock_timestamp())))
      where id = ${artifactId} and (${before === undefined} or ${expiresAt}::timestamptz is not null)`;
    const details = { owner, retentionRevision, expiresAt: expiresAt?.toISOString() ?? null };
    const action = after.is_released ? "artifact.pin-released" : "artifact.pinned";
    const entry = { action, by, callerId: artifact.caller_id, subject: `artifact:${artifactId}`, details };
    await appendAudit(tx, entry, retentionDays);
    return ok({ pin: toPin(after), applied: true });
  });
}

type PinRow = {
  artifact_id: string;
  owner: string;
  retention_revision: string;
  expires_at: string | null;
  created_at: string;
  updated_at: string;
  is_same?: boolean;
};

/** Times as the API writes them: a client's date parser need not know every year that a pin may name. */
function pinColumns(tx: Tx): Fragment {
  return tx`artifact_id, owner, retention_revision, rfc3339(expires_at) as expires_at, rfc3339(created_at) as created_at,
            rfc3339(updated_at) as updated_at`;
}

function toPin(row: PinRow): Pin {
  return {
    artifactId: row.artifact_id,
    owner: row.owner,
    retentionRevision: Number(row.retention_revision),
    expiresAt: row.expires_at,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
