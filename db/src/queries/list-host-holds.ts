import type { Tx } from "../database.ts";

/** A host that nobody may ask for a while. */
export type HostHold = { readonly hostKey: string; readonly remainingMs: number };

/** Which of these hosts are held now, and for how long from now, rounded up. */
export async function listHostHolds(sql: Tx, hostKeys: readonly string[]): Promise<HostHold[]> {
  if (hostKeys.length === 0) return [];
  // A scalar subquery each, so that every host is one probe of the index.
  return sql<HostHold[]>`
    select host_key as "hostKey", remaining_ms as "remainingMs" from (
      select k.host_key,
             (select ceil(extract(epoch from h.held_until - clock_timestamp())::float8 * 1000) from host_holds h
              where h.host_key = k.host_key) as remaining_ms
      from unnest(${[...new Set(hostKeys)]}::text[]) as k (host_key)
    ) held where remaining_ms > 0`;
}
