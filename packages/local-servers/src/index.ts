export { findFreePort, isPortFree } from "./free-port.ts";
export { LocalServerError, type LocalServerErrorCode } from "./local-server-error.ts";
export { describeProcess, isSameProcess, type ProcessDescription } from "./process-description.ts";
export {
  type LeftoverOutcome,
  type ProcessRecord,
  readProcessRecord,
  recordProcess,
  removeProcessRecord,
  stopLeftover,
  stopPid,
} from "./process-record.ts";
export { prepareDatabase, type PreparedDatabase } from "./prepare-database.ts";
export type { RunningServer, ServerExit, StopStep } from "./running-server.ts";
export { type PostgresOptions, startPostgres } from "./start-postgres.ts";
export { findRedisBinary } from "./find-redis-binary.ts";
export { installRedisByApt, type RedisInstallation } from "./install-redis-by-apt.ts";
export { type RedisOptions, startRedis } from "./start-redis.ts";
