/** What took too long. */
export const LATE = Symbol("late");

/** Waits for `work`, at most `limitMs`: what comes later is left behind, and its failure ignored. */
export async function within<T>(limitMs: number, work: Promise<T>): Promise<T | typeof LATE> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<typeof LATE>((resolve) => {
    timer = setTimeout(resolve, limitMs, LATE);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
