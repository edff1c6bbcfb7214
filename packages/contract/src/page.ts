import { z } from "zod";

/** The most rows a page holds. */
export const PAGE_ROWS_MAX = 200;
/** The rows a page holds when nobody asks for a number. */
export const PAGE_ROWS_DEFAULT = 50;

/** An opaque place in a list: base64url, given back as it came. Malformed or foreign ones answer INVALID_REQUEST. */
export const Cursor = z
  .string()
  .min(1)
  .max(500)
  .regex(/^[A-Za-z0-9_-]*$/, "Give back a cursor as it came.");
export type Cursor = z.infer<typeof Cursor>;

/** What every list query takes: `limit` 1 to 200 (50 by default) and `cursor` (absent: from the start). */
export const PageQuery = z.strictObject({
  limit: z.int().min(1).max(PAGE_ROWS_MAX).default(PAGE_ROWS_DEFAULT),
  cursor: Cursor.optional(),
});
export type PageQuery = z.infer<typeof PageQuery>;

/** One page of a list. `nextCursor` null: there is no more. */
export type Page<T> = { items: T[]; nextCursor: string | null };

/** The schema of a page of `item`. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.strictObject({ items: z.array(item).max(PAGE_ROWS_MAX), nextCursor: Cursor.nullable() });
}
