/** How long past the end of a drain's grace work is still waited for; less than the loop waits for its runs. */
const OVERRUN_MS = 1_000;

/**
 * What `work` comes to, or null when the process is ending (`signal` aborts with DRAIN) and `work` is not over a second
 * later. It then goes on unheard. Other reasons to abort are not heeded: nobody waits for what they end.
 */
export async function unlessDrained<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  let onAbort = (): void => undefined;
  const drained = new Promise<null>((resolve) => {
    onAbort = () => {
      if (signal.reason === "DRAIN") timer = setTimeout(() => resolve(null), OVERRUN_MS);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    // A race that is over still takes the loser's rejection: none goes unhandled.
    return await Promise.race([work, drained]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}
