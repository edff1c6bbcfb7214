/** What a command gets from the process it runs in. Only `main.ts` makes one. */
export type CliContext = {
  /** The environment, read once. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Aborts at the first SIGINT or SIGTERM, or when the launcher that started this process is gone: drain and end. */
  readonly stop: AbortSignal;
  /** Aborts at the second signal, in the tick before the process exits: only synchronous work is left. */
  readonly force: AbortSignal;
  /** Writes a line for a person. */
  print(line: string): void;
  /** The same on the error stream. */
  printError(line: string): void;
  /** Tells the launcher, if there is one, that this process is ready. */
  ready(): void;
  /** The pid of this program and how to start it again. */
  readonly self: { readonly execPath: string; readonly execArgv: readonly string[]; readonly script: string };
};
