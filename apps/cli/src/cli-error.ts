/**
 * What a shell sees. 0 is success; 1 a fault of ours, a mismatch, or work that was told to stop; each of the others one kind of
 * thing that the user can put right.
 */
export const EXIT_CODES = {
  FAULT: 1,
  /** What was compared does not agree (`reconcile`). */
  MISMATCH: 1,
  /** Wrong arguments or settings. */
  USAGE: 2,
  /** Another `up` has this state directory. */
  STATE_LOCKED: 3,
  /** The state directory can't be written, is of a newer version, or holds data that can't be used. */
  STATE_UNUSABLE: 4,
  PORT_TAKEN: 5,
  /** No Postgres or no Redis is to be had. */
  SERVER_MISSING: 6,
  /** A process of the stack did not become ready. */
  NOT_READY: 7,
  /** The artifact store is not the one that the database's artifacts are in, or nobody has claimed it. */
  STORE_REFUSED: 8,
} as const;

/** One name of that set. */
export type ExitReason = keyof typeof EXIT_CODES;

/** Ends the command with a message for a person and that exit code; no stack is shown. */
export class CliError extends Error {
  readonly reason: ExitReason;

  constructor(reason: ExitReason, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "CliError";
    this.reason = reason;
  }
}
