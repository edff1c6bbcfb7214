import type { Tx } from "../../database.ts";

/** Something that is wrong between rows and objects, with the object it is about. */
export type Finding = {
  /** MISSING: a row's object is not there. DAMAGED: its bytes are not its hash's. ORPHAN: no row names it. */
  readonly kind: "MISSING" | "DAMAGED" | "ORPHAN";
  /** Lower-case hex. */
  readonly sha256: string;
  readonly generation: string;
};

/**
 * Records a finding, kept `retentionDays` from now, fractions included. One row per object and kind: found again, it is as
 * if found now. The row's id is made of both, so that the primary key holds that under any concurrency.
 *
 * The AVAILABLE blob of an object that is missing or damaged becomes the one unread longest: the scrub reads it next and,
 * when it is so, gives it up. Until then equal bytes would not be stored. One that is locked keeps its turn.
 */
export async function recordFinding(sql: Tx, finding: Finding & { readonly retentionDays: number }): Promise<void> {
  const { kind, sha256, generation, retentionDays } = finding;
  await sql`
    with suspected as (
      update blobs set verified_at = 'epoch'
      where id in (
        select id from blobs
        where ${kind} <> 'ORPHAN' and sha256 = decode(${sha256}, 'hex') and state = 'AVAILABLE' and generation = ${generation}
        for no key update skip locked
      )
    )
    insert into store_findings (id, kind, sha256, generation, expires_at)
    values (md5(${`${kind}/${sha256}/${generation}`}::text)::uuid, ${kind}, decode(${sha256}, 'hex'), ${generation},
            clock_timestamp() + make_interval(secs => ${retentionDays}::float8 * 86400))
    on conflict (id) do update set found_at = excluded.found_at, expires_at = excluded.expires_at`;
}
