/**
 * The store or the spool can't take or give bytes just now: a full disk, an input/output error, no rights, no file
 * handles left. It is a fault, not a failure of the job: nothing was stored, nothing leaked, the same call may be made
 * again. `code` is the operating system's (`ENOSPC`, `EIO` …) or the backend's; the message names no path.
 */
export class StoreUnavailable extends Error {
  override readonly name = "StoreUnavailable";
  readonly code: string;

  constructor(code: string, cause?: unknown) {
    super(`The artifact store is unavailable (${code}).`, { cause });
    this.code = code;
  }
}

/** The code of an operating system error, or null for anything else. */
export function errnoOf(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  const { code, syscall } = error as NodeJS.ErrnoException;
  return typeof code === "string" && typeof syscall === "string" ? code : null;
}

/** An operating system error as `StoreUnavailable`; any other error (a bug of ours) as it is. */
export function toStoreFault(error: unknown): unknown {
  const code = errnoOf(error);
  return code === null ? error : new StoreUnavailable(code, error);
}

/** Wraps the calls of one backend: the same function, its errors turned by `toFault`. */
export function createFaulting(
  toFault: (error: unknown) => unknown,
): <A extends unknown[], T>(run: (...args: A) => Promise<T>) => (...args: A) => Promise<T> {
  return (run) =>
    async (...args) => {
      try {
        return await run(...args);
      } catch (error) {
        throw toFault(error);
      }
    };
}
