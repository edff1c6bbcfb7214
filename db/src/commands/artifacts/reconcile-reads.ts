import type { Sql } from "../../database.ts";
import { CLOCKS_APART_MS, firstIdAt } from "../../queries/id-at.ts";
import { toStorableJson } from "../../to-storable-text.ts";

/** One read of an object's bytes, as the store's own access log tells it. */
export type StoreRead = {
  /** The store's name for the request: what is logged twice counts once. */
  readonly requestId: string;
  readonly at: Date;
  /** Lower-case hex. */
  readonly sha256: string;
  readonly generation: string;
  /** What the request said in `x-keble-audit-id`; null: nothing. */
  readonly auditId: string | null;
  /** OTHER_KEY: a header signed by a key that is not the deployment's. UNKNOWN: the log does not say. */
  readonly signedBy: "LINK" | "OWN_KEY" | "OTHER_KEY" | "NOBODY" | "UNKNOWN";
  /** Where the log says so, for a person to find it again. */
  readonly place: string;
};

/**
 * Why a read and the audit do not agree. Without a row: NO_AUDIT_ID, OTHER_KEY, UNKNOWN_AUDIT_ID (not an id, or no row has
 * it). With one: NOT_BY_LINK (the id was sent without the link's signature), OTHER_OBJECT, BEFORE_ROW, AFTER_EXPIRY.
 */
export type MismatchReason =
  | "NO_AUDIT_ID"
  | "OTHER_KEY"
  | "UNKNOWN_AUDIT_ID"
  | "NOT_BY_LINK"
  | "OTHER_OBJECT"
  | "BEFORE_ROW"
  | "AFTER_EXPIRY";

/** A read that the audit does not account for. The last four are the row's; null without one. */
export type ReadMismatch = StoreRead & {
  readonly reason: MismatchReason;
  readonly subject: string | null;
  readonly actor: string | null;
  readonly signedAt: Date | null;
  readonly expiresAt: string | null;
};

/** A link that was signed and that no read has used. */
export type UnusedLink = {
  readonly auditId: string;
  readonly signedAt: Date;
  readonly subject: string;
  readonly actor: string;
  readonly callerId: string | null;
};

/** Links signed in a window, by how often they were read. `reads` counts the reads of all of them. */
export type LinkCounts = {
  readonly signed: number;
  readonly unread: number;
  readonly readOnce: number;
  readonly readOften: number;
  readonly reads: number;
};

/** From the first moment to before the second. */
export type Window = { readonly since: Date; readonly until: Date };

/** Reads held against the audit's rows of signed downloads, on one connection. Close it, whatever happens. */
export type Reconciliation = {
  /** Takes reads in; returns how many were new. */
  add(reads: readonly StoreRead[]): Promise<number>;
  /** What does not agree, in the order of the log. `skewMs`: how far the store's clock may be from the database's. */
  listMismatches(skewMs: number): AsyncGenerator<ReadMismatch>;
  countLinks(window: Window): Promise<LinkCounts>;
  /** Links signed in the window that nobody has used, oldest first. */
  listUnused(window: Window): AsyncGenerator<UnusedLink>;
  close(): Promise<void>;
};

const PAGE = 1_000;
/** How coarse the times of access logs are: a read may be so much later than its line says. */
const LOG_TIME_SECONDS = 1;
const ACTION = "artifact.download-signed";
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Opens one. The reads lie in a temporary table of the connection, so that any number of them takes no memory here. */
export async function openReconciliation(sql: Sql): Promise<Reconciliation> {
  const connection = await sql.reserve();
  await connection`drop table if exists pg_temp.reconcile_reads`;
  await connection`
    create temporary table reconcile_reads (
      request_id text primary key,
      seq bigint generated always as identity,
      read_at timestamptz not null,
      sha256 text not null,
      generation text not null,
      audit_id uuid,
      said_id text,
      signed_by text not null,
      place text not null
    )`;
  await connection`create unique index on pg_temp.reconcile_reads (seq)`;
  await connection`create index on pg_temp.reconcile_reads (audit_id)`;
  const inWindow = ({ since, until }: Window) => connection`
    a.action = ${ACTION} and a.occurred_at >= ${since} and a.occurred_at < ${until}
    and a.id >= ${firstIdAt(since.getTime() - CLOCKS_APART_MS)} and a.id < ${firstIdAt(until.getTime() + CLOCKS_APART_MS)}`;

  return {
    async add(reads) {
      const rows = reads.map(({ auditId, at, ...read }) => ({
        ...read,
        at: at.toISOString(),
        said: auditId,
        audit: auditId !== null && UUID.test(auditId) ? auditId : null,
      }));
      const added = await connection`
        insert into pg_temp.reconcile_reads (request_id, read_at, sha256, generation, audit_id, said_id, signed_by, place)
        select "requestId", at, sha256, generation, audit, said, "signedBy", place
        from jsonb_to_recordset(${connection.json(toStorableJson(rows))}) as read(
          "requestId" text, at timestamptz, sha256 text, generation text, audit uuid, said text, "signedBy" text, place text)
        on conflict (request_id) do nothing`;
      return added.count;
    },

    async *listMismatches(skewMs) {
      await connection`analyze pg_temp.reconcile_reads`;
      let after = "0";
      for (;;) {
        const page = await connection<(ReadMismatch & { seq: string })[]>`
          select r.seq, r.request_id as "requestId", r.read_at as at, r.sha256, r.generation, r.said_id as "auditId",
                 r.signed_by as "signedBy", r.place, verdict.reason, a.subject, a.actor, a.occurred_at as "signedAt",
                 a.details->>'expiresAt' as "expiresAt"
          from pg_temp.reconcile_reads r
          left join audit_events a on a.id = r.audit_id and a.action = ${ACTION}
          cross join lateral (select case
            when r.said_id is null and r.signed_by = 'OTHER_KEY' then 'OTHER_KEY'
            when r.said_id is null then 'NO_AUDIT_ID'
            when a.id is null then 'UNKNOWN_AUDIT_ID'
            when r.signed_by not in ('LINK', 'UNKNOWN') then 'NOT_BY_LINK'
            when a.details->>'sha256' <> r.sha256 or a.details->>'generation' <> r.generation then 'OTHER_OBJECT'
            when r.read_at < a.occurred_at - make_interval(secs => ${skewMs}::float8 / 1000 + ${LOG_TIME_SECONDS}) then 'BEFORE_ROW'
            when r.read_at > (a.details->>'expiresAt')::timestamptz + make_interval(secs => ${skewMs}::float8 / 1000)
              then 'AFTER_EXPIRY'
          end as reason) verdict
          where r.seq > ${after} and verdict.reason is not null
          order by r.seq limit ${PAGE}`;
        for (const { seq, ...mismatch } of page) {
          after = seq;
          yield mismatch;
        }
        if (page.length < PAGE) return;
      }
    },

    async countLinks(window) {
      const [counts] = await connection<LinkCounts[]>`
        select count(*)::int as signed, (count(*) filter (where link.reads = 0))::int as unread,
               (count(*) filter (where link.reads = 1))::int as "readOnce",
               (count(*) filter (where link.reads > 1))::int as "readOften", coalesce(sum(link.reads), 0)::int as reads
        from (
          select (select count(*) from pg_temp.reconcile_reads r where r.audit_id = a.id) as reads
          from audit_events a where ${inWindow(window)}
        ) link`;
      return counts ?? { signed: 0, unread: 0, readOnce: 0, readOften: 0, reads: 0 };
    },

    async *listUnused(window) {
      let after = "00000000-0000-0000-0000-000000000000";
      for (;;) {
        const page = await connection<UnusedLink[]>`
          select a.id as "auditId", a.occurred_at as "signedAt", a.subject, a.actor, a.caller_id as "callerId"
          from audit_events a
          where ${inWindow(window)} and a.id > ${after}
            and not exists (select 1 from pg_temp.reconcile_reads r where r.audit_id = a.id)
          order by a.id limit ${PAGE}`;
        for (const link of page) {
          after = link.auditId;
          yield link;
        }
        if (page.length < PAGE) return;
      }
    },

    async close() {
      await connection`drop table if exists pg_temp.reconcile_reads`;
      connection.release();
    },
  };
}
