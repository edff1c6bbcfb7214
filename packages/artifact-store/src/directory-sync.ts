/**
 * Shares directory syncs: calls for one directory that come while a sync of it runs wait for one sync more, which starts
 * after all of them. A call never takes part in a sync that began before it, since that one may not cover its entry.
 */
export function createDirectorySync(sync: (path: string) => Promise<void>): (path: string) => Promise<void> {
  type Entry = { readonly current: Promise<void>; next: Promise<void> | null };
  const running = new Map<string, Entry>();

  function isAwaited(entry: Entry): boolean {
    return entry.next !== null;
  }

  async function run(path: string): Promise<void> {
    const current = sync(path);
    const entry: Entry = { current, next: null };
    running.set(path, entry);
    try {
      await current;
    } finally {
      if (!isAwaited(entry)) running.delete(path);
    }
  }

  return async (path) => {
    const entry = running.get(path);
    if (entry === undefined) return run(path);
    entry.next ??= entry.current.then(
      async () => run(path),
      async () => run(path),
    );
    return entry.next;
  };
}
