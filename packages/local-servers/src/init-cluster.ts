import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { LocalServerError } from "./local-server-error.ts";
import type { PostgresBinaries } from "./postgres-binaries.ts";
import type { RunAs } from "./run-as.ts";
import { SERVER_ENVIRONMENT } from "./server-environment.ts";

/** The superuser of an embedded cluster. */
export const CLUSTER_USER = "keble";

/** The major version of the pinned binaries; a cluster of another one is never opened. */
const CLUSTER_VERSION = "18";

/**
 * Makes sure that `directory` is a cluster with a known password, kept in its sibling file `<directory>.password` (0600),
 * and returns that password. A new one is built beside and renamed into place, so a crash leaves no half of one.
 */
export function initCluster(options: {
  readonly directory: string;
  readonly binaries: PostgresBinaries;
  readonly runAs: RunAs;
  readonly isDurable: boolean;
}): string {
  const { directory } = options;
  const passwordFile = `${directory}.password`;
  if (existsSync(directory) && readdirSync(directory).length > 0) return openExisting(directory, passwordFile);

  rmSync(directory, { recursive: true, force: true });
  const building = `${directory}.new`;
  rmSync(building, { recursive: true, force: true });
  mkdirSync(dirname(directory), { recursive: true, mode: 0o700 });
  mkdirSync(building, { mode: 0o700 });
  const password = randomBytes(24).toString("base64url");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  const { uid, gid } = options.runAs.ids;
  if (uid !== undefined && gid !== undefined) {
    chownSync(building, uid, gid);
    chownSync(passwordFile, uid, gid);
  }
  const flags = ["-D", building, "-U", CLUSTER_USER, "--auth=scram-sha-256", `--pwfile=${passwordFile}`];
  const [command, args] = options.runAs.wrap(options.binaries.initdb, [
    ...flags,
    "--locale=C",
    "--encoding=UTF8",
    "--no-instructions",
    ...(options.isDurable ? [] : ["--no-sync"]),
  ]);
  const { status, stderr, error } = spawnSync(command, args, {
    encoding: "utf8",
    cwd: building,
    env: SERVER_ENVIRONMENT,
    ...options.runAs.ids,
  });
  if (status !== 0) {
    rmSync(building, { recursive: true, force: true });
    throw new LocalServerError("START_FAILED", `initdb failed in ${directory}: ${error?.message ?? stderr.trim()}`);
  }
  renameSync(building, directory);
  return password;
}

function openExisting(directory: string, passwordFile: string): string {
  if (!existsSync(`${directory}/PG_VERSION`)) {
    throw new LocalServerError("DATA_UNUSABLE", `${directory} is not empty and holds no Postgres cluster`);
  }
  const version = readFileSync(`${directory}/PG_VERSION`, "utf8").trim();
  if (version !== CLUSTER_VERSION) {
    throw new LocalServerError(
      "DATA_UNUSABLE",
      `${directory} was written by Postgres ${version}, this is ${CLUSTER_VERSION}: move its data with pg_dump, or choose another SCRAPER_STATE_DIRECTORY`,
    );
  }
  if (!existsSync(passwordFile)) {
    throw new LocalServerError(
      "DATA_UNUSABLE",
      `${passwordFile} is gone, and with it the password of the cluster in ${directory}`,
    );
  }
  return readFileSync(passwordFile, "utf8").trim();
}
