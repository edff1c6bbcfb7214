import type { Tx } from "../database.ts";
import { quarantineColumns, type QuarantineRow } from "./quarantine-row.ts";

/** The routes that are quarantined now, at most one row each. */
export async function listQuarantines(sql: Tx): Promise<QuarantineRow[]> {
  return sql<QuarantineRow[]>`
    select ${quarantineColumns(sql)} from route_quarantines
    where lifts_at is null or lifts_at > clock_timestamp()
    order by route`;
}
