/** A process's own time: it measures durations and stamps logs. What decides asks the database's clock instead. */
export type Clock = {
  /** Milliseconds that never go back; only differences mean something. */
  monotonicMs(): number;
  /** Milliseconds since the epoch, as this machine believes. */
  wallMs(): number;
};

/** The machine's own clock. */
export const SYSTEM_CLOCK: Clock = {
  monotonicMs: () => performance.now(),
  wallMs: () => Date.now(),
};
