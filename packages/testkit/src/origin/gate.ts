/** A promise that a test opens by hand: what an origin or an assertion waits for instead of a sleep. */
export type Gate = { readonly opened: Promise<void>; open(): void };

/** A closed gate. Opening it twice is harmless. */
export function createGate(): Gate {
  let open = (): void => {};
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { opened, open };
}
