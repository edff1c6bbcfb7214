import type { Tx } from "../database.ts";

/** How many rows each of these tables has. Reads them whole. */
export async function countRows<T extends string>(sql: Tx, tables: readonly T[]): Promise<Readonly<Record<T, number>>> {
  const counts: [T, number][] = [];
  for (const table of tables) {
    const name: string = table;
    const [row] = await sql<{ count: string }[]>`select count(*) as count from ${sql(name)}`;
    counts.push([table, Number(row?.count)]);
  }
  return Object.fromEntries(counts) as Record<T, number>;
}
