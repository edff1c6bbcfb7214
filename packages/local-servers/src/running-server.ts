/** How a server process ended: its exit code, or the signal that ended it. */
export type ServerExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null };

/** One step of a stop: send the signal, wait this long, then go to the next. */
export type StopStep = { readonly signal: NodeJS.Signals; readonly waitMs: number };

/** A server that answered at least once. It runs in a process group of its own: a terminal's Ctrl-C does not reach it. */
export type RunningServer = {
  readonly name: string;
  /** A connection URL, password included. */
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** Resolves when the process ends, for whatever reason; never rejects. */
  readonly exited: Promise<ServerExit>;
  /** Ends the process, harder with each step, and resolves when it is gone. Calls share one stop. */
  stop(): Promise<void>;
};
