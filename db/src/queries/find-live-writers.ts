import type { Tx } from "../database.ts";

/** Who may be writing: connections of our processes, or of the services' role, and leases that are not over. */
export type LiveWriters = {
  readonly connections: readonly { readonly application: string; readonly pid: number }[];
  /** Of jobs, deliveries and flights together. */
  readonly leases: number;
};

/**
 * Looks for them. Of other roles a role sees name and user, not the kind of their backend. `appRole` null: the services have no
 * role of their own, so that only their names tell them.
 */
export async function findLiveWriters(sql: Tx, appRole: string | null): Promise<LiveWriters> {
  const connections = await sql<{ application: string; pid: number }[]>`
    select application_name as application, pid from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and coalesce(backend_type, 'client backend') = 'client backend'
      and application_name <> current_setting('application_name')
      and (application_name like 'keble-%' or usename = ${appRole})
    order by application_name, pid`;
  const [row] = await sql<{ leases: number }[]>`
    select ((select count(*) from jobs where lease_until > clock_timestamp())
          + (select count(*) from callback_deliveries where lease_until > clock_timestamp())
          + (select count(*) from cache_flights where held_until > clock_timestamp()))::int as leases`;
  return { connections: [...connections], leases: row?.leases ?? 0 };
}
