/** Waits for what a stand-in counts, without sleeping. */
export type Watch = {
  /** Call it after every change. */
  changed(): void;
  /** Resolves with what `read` gives, as soon as that is anything. */
  until<T>(read: () => T | undefined): Promise<T>;
};

/** A watch over the state of one stand-in. */
export function createWatch(): Watch {
  const watchers = new Set<() => void>();
  return {
    changed() {
      for (const watcher of watchers) watcher();
    },
    until: <T>(read: () => T | undefined): Promise<T> =>
      new Promise((resolve) => {
        const watcher = (): void => {
          const value = read();
          if (value === undefined) return;
          watchers.delete(watcher);
          resolve(value);
        };
        watchers.add(watcher);
        watcher();
      }),
  };
}
