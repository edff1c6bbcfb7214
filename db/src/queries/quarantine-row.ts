import type { Fragment, Tx } from "../database.ts";

/** A route that no job is sent by. */
export type QuarantineRow = {
  readonly route: string;
  /** The job whose attempt showed it; null: none did. */
  readonly jobId: string | null;
  /** OPERATOR, the code of the failure that caused it, or COST_OVERRUN. */
  readonly reason: string;
  readonly nativeCode: string | null;
  /** Who set it: an API key's id, or `system:<part>`. */
  readonly actor: string;
  readonly note: string | null;
  readonly quarantinedAt: Date;
  /** Null: until somebody releases it. */
  readonly liftsAt: Date | null;
  /** When its supplier was last asked; null: never. */
  readonly probedAt: Date | null;
};

/** The columns of `route_quarantines` as a `QuarantineRow` names them. */
export function quarantineColumns(sql: Tx): Fragment {
  return sql`route, job_id as "jobId", reason, native_code as "nativeCode", actor, note, quarantined_at as "quarantinedAt",
             lifts_at as "liftsAt", probed_at as "probedAt"`;
}
