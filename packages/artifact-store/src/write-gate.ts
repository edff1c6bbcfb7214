/** Lets at most `slots` runs go at once; the others wait in order. A run that throws frees its slot. */
export function createWriteGate(slots: number): <T>(run: () => Promise<T>) => Promise<T> {
  let free = slots;
  const waiting: (() => void)[] = [];

  return async (run) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}
