import type { Tx } from "../database.ts";

/** Whether any row names, or once named, an object of a store: an artifact, its bytes, or an object that is on its way out. */
export async function hasStoredRows(sql: Tx): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`
    select exists (select from artifacts) or exists (select from blobs) or exists (select from object_deletions) as found`;
  return row?.found === true;
}
