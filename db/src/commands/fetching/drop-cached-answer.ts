import type { Tx } from "../../database.ts";
import type { CachedAnswer } from "../../queries/list-cached-answers.ts";

/** Drops exactly the answer that was listed, unless it was replaced, or somebody else is at it. Waits for nobody. */
export async function dropCachedAnswer(
  sql: Tx,
  { key, callerId, validatedAtMs }: Pick<CachedAnswer, "key" | "callerId" | "validatedAtMs">,
): Promise<void> {
  await sql`
    delete from cache_entries e
    using (
      select c.key, c.caller_id from cache_entries c
      where c.key = decode(${key}, 'hex') and c.caller_id = ${callerId}
        and (extract(epoch from c.validated_at) * 1000)::float8 = ${validatedAtMs}
      for update skip locked
    ) d
    where e.key = d.key and e.caller_id = d.caller_id`;
}
