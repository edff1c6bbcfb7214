import { randomUUID } from "node:crypto";
import type { Sql, Tx } from "../../database.ts";
import { findNamespace, type Namespace, type NamespacePlace } from "../../queries/find-namespace.ts";
import { hasStoredRows } from "../../queries/has-stored-rows.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/** What a database held when its store was adopted: rows, and the bytes they promise. */
export type Adopted = { readonly artifacts: number; readonly blobs: number; readonly bytes: number };

/**
 * HELD: there was a row, complete or not. BEGUN: it was written now; `adopted` says what it was written for, `replaced`
 * which unfinished claim it took the place of. UNKNOWN_STORE: artifacts are there and no row, and nobody said to adopt them.
 */
export type NamespaceClaim =
  | { readonly state: "HELD"; readonly row: Namespace }
  | {
      readonly state: "BEGUN";
      readonly row: Namespace;
      readonly adopted: Adopted | null;
      readonly replaced: Namespace | null;
    }
  | { readonly state: "UNKNOWN_STORE" };

/**
 * Begins the claim of a store for this database, for the owner of the schema alone: writes the one row, incomplete, with a
 * random claim. A row that is there stays as it is, except an unfinished one of another place or owner in a database
 * without artifacts: nothing was ever kept under it. Existing artifacts are adopted only when `rows` says so, audited as
 * `store.adopted`.
 */
export async function claimNamespace(
  sql: Sql,
  wanted: { readonly place: NamespacePlace; readonly owner: string; readonly rows: "REFUSE" | "ADOPT" },
  by: Actor,
  retentionDays?: number,
): Promise<NamespaceClaim> {
  return sql.begin(async (tx) => {
    // Two at once take turns: the second one finds the first one's row.
    await tx`select pg_advisory_xact_lock(hashtextextended('store-namespace', 0))`;
    const row = await findNamespace(tx);
    if (row !== null && (row.claimedAt !== null || isSame(row, wanted) || (await hasStoredRows(tx)))) {
      return { state: "HELD", row };
    }
    const isAdoption = row === null && (await hasStoredRows(tx));
    if (isAdoption && wanted.rows === "REFUSE") return { state: "UNKNOWN_STORE" };
    await tx`delete from store_namespace where claimed_at is null`;
    const begun = await insertRow(tx, wanted);
    const adopted = isAdoption ? await countAdopted(tx) : null;
    if (adopted !== null) {
      const details = { ...adopted, ...toDetails(begun) };
      const entry = { action: "store.adopted", by, callerId: null, subject: `store:${begun.claim}`, details };
      await appendAudit(tx, entry, retentionDays);
    }
    return { state: "BEGUN", row: begun, adopted, replaced: row };
  });
}

/** A row as an audit's details: all of it but times. */
export function toDetails(row: Namespace): Readonly<Record<string, string | null>> {
  const { kind, prefix, endpoint, bucket, directory, owner, claim } = row;
  return { kind, prefix, endpoint, bucket, directory, owner, claim };
}

function isSame(row: Namespace, wanted: { readonly place: NamespacePlace; readonly owner: string }): boolean {
  const { endpoint, bucket, directory } = toColumns(wanted.place);
  return (
    row.kind === wanted.place.kind &&
    row.prefix === wanted.place.prefix &&
    row.endpoint === endpoint &&
    row.bucket === bucket &&
    row.directory === directory &&
    row.owner === wanted.owner
  );
}

async function insertRow(
  tx: Tx,
  { place, owner }: { readonly place: NamespacePlace; readonly owner: string },
): Promise<Namespace> {
  const { endpoint, bucket, directory } = toColumns(place);
  const row = {
    kind: place.kind,
    prefix: place.prefix,
    endpoint,
    bucket,
    directory,
    owner,
    claim: randomUUID(),
    claimedAt: null,
  };
  await tx`
    insert into store_namespace (id, kind, prefix, endpoint, bucket, directory, owner, claim)
    values (1, ${row.kind}, ${row.prefix}, ${endpoint}, ${bucket}, ${directory}, ${owner}, ${row.claim})`;
  return row;
}

function toColumns(place: NamespacePlace): Pick<Namespace, "endpoint" | "bucket" | "directory"> {
  return place.kind === "S3"
    ? { endpoint: place.endpoint, bucket: place.bucket, directory: null }
    : { endpoint: null, bucket: null, directory: place.directory };
}

async function countAdopted(tx: Tx): Promise<Adopted> {
  const [row] = await tx<{ artifacts: string; blobs: string; bytes: string }[]>`
    select (select count(*) from artifacts where state = 'AVAILABLE') as artifacts, count(*) as blobs,
           coalesce(sum(size_bytes), 0) as bytes
    from blobs where state = 'AVAILABLE'`;
  return { artifacts: Number(row?.artifacts), blobs: Number(row?.blobs), bytes: Number(row?.bytes) };
}
