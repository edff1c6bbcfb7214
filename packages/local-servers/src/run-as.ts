import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, readFileSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { LocalServerError } from "./local-server-error.ts";

/** How to run a program that refuses to run as root. */
export type RunAs = {
  wrap(command: string, args: readonly string[]): [string, string[]];
  /** Set when the program runs as another user of this machine: its folders must belong to them. */
  readonly ids: { readonly uid?: number; readonly gid?: number };
};

/** Runs programs as this process's own user. */
export const RUN_AS_SELF: RunAs = { wrap: (command, args) => [command, [...args]], ids: {} };

const NOBODY = 65_534;

/**
 * How to run the Postgres binaries: as ourselves, unless that is root. Then in a user namespace where root's files look
 * like `nobody`'s (works in every folder); where namespaces are forbidden, as the owner of an existing data folder or as
 * `postgres` or `nobody`, provided that user can reach the binary and the data. For that the folder that holds the data
 * is made passable (not readable) for others.
 */
export function choosePostgresUser(options: { readonly binary: string; readonly dataDirectory: string }): RunAs {
  if (process.getuid?.() !== 0) return RUN_AS_SELF;
  const owner = existsSync(options.dataDirectory) ? statSync(options.dataDirectory) : null;
  const isOthers = owner !== null && owner.uid !== 0;
  if (!isOthers) {
    const namespace = inUserNamespace();
    if (canRun(namespace, options.binary, ["--version"])) return namespace;
  }
  const account = isOthers ? { uid: owner.uid, gid: owner.gid } : (findAccount("postgres") ?? findAccount("nobody"));
  if (account !== null) {
    const asAccount: RunAs = { wrap: (command, args) => [command, [...args]], ids: account };
    const parent = dirname(options.dataDirectory);
    chmodSync(parent, statSync(parent).mode | 0o011);
    if (canRun(asAccount, options.binary, ["--version"]) && canRun(asAccount, "test", ["-x", parent])) return asAccount;
  }
  throw new LocalServerError(
    "ROOT_REFUSED",
    "Postgres refuses to run as root, and here root can neither open a user namespace (unshare -U) nor act as another user. " +
      "Run this as another user, or set SCRAPER_STATE_DIRECTORY to a folder that every user can pass through (not below /root), with the project in such a folder too.",
  );
}

function inUserNamespace(): RunAs {
  const flags = ["-U", `--map-user=${NOBODY}`, `--map-group=${NOBODY}`];
  return { wrap: (command, args) => ["unshare", [...flags, "--", command, ...args]], ids: {} };
}

function canRun(runAs: RunAs, program: string, programArgs: readonly string[]): boolean {
  const [command, args] = runAs.wrap(program, programArgs);
  return spawnSync(command, args, { stdio: "ignore", cwd: "/", timeout: 10_000, ...runAs.ids }).status === 0;
}

function findAccount(name: string): { uid: number; gid: number } | null {
  if (!existsSync("/etc/passwd")) return null;
  for (const line of readFileSync("/etc/passwd", "utf8").split("\n")) {
    const [account, , uid, gid] = line.split(":");
    if (account === name) return { uid: Number(uid), gid: Number(gid) };
  }
  return null;
}
