/**
 * Runs a bounded batch again until one comes back short, or the signal aborts between two. `once` answers how many rows
 * its batch took. Returns the sum.
 */
export async function sweep(
  limit: number,
  once: (limit: number) => Promise<number>,
  signal: AbortSignal,
): Promise<number> {
  let total = 0;
  for (;;) {
    const taken = await once(limit);
    total += taken;
    if (taken < limit || signal.aborted) {
      return total;
    }
  }
}
