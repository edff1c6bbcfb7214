import type { Tx } from "../database.ts";

/** Where a database's artifacts are: what tells one store from another. Holds no secret. */
export type NamespacePlace =
  | { readonly kind: "LOCAL"; readonly prefix: string; readonly directory: string }
  | { readonly kind: "S3"; readonly prefix: string; readonly endpoint: string; readonly bucket: string };

/** The row about the store that this database's artifacts are in. `claimedAt` null: its claim was begun and not finished. */
export type Namespace = {
  readonly kind: "LOCAL" | "S3";
  readonly prefix: string;
  readonly endpoint: string | null;
  readonly bucket: string | null;
  readonly directory: string | null;
  readonly owner: string;
  readonly claim: string;
  readonly claimedAt: Date | null;
};

/** That row, or null while nobody has begun a claim. */
export async function findNamespace(sql: Tx): Promise<Namespace | null> {
  const [row] = await sql<Namespace[]>`
    select kind, prefix, endpoint, bucket, directory, owner, claim, claimed_at as "claimedAt"
    from store_namespace where id = 1`;
  return row ?? null;
}
