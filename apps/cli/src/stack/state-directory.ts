import { accessSync, constants, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CliError } from "../cli-error.ts";

/** The layout of the state directory that this version writes. A higher number on disk is refused. */
const STATE_VERSION = 1;

/** The paths of everything the local stack keeps. */
export type StateDirectory = {
  readonly root: string;
  readonly lock: string;
  readonly postgres: string;
  readonly redis: string;
  readonly artifacts: string;
  readonly logs: string;
  /** One record for each child, for the start after a crash. */
  readonly run: string;
  readonly secrets: string;
  readonly credentials: string;
  readonly processes: string;
  readonly demo: string;
  /** The ports of the sample site. */
  readonly site: string;
};

/**
 * Makes sure the folder exists, is the owner's alone and can be written, and that its version is ours. Writes the version
 * of a new one. Fails with STATE_UNUSABLE.
 */
export function openStateDirectory(path: string): StateDirectory {
  const root = resolve(path);
  try {
    for (const folder of [root, join(root, "logs"), join(root, "run")]) makeFolder(folder);
    accessSync(root, constants.R_OK | constants.W_OK | constants.X_OK);
    checkVersion(join(root, "state.json"));
  } catch (cause) {
    if (cause instanceof CliError) throw cause;
    const reason = cause instanceof Error ? cause.message : "unknown";
    throw new CliError(
      "STATE_UNUSABLE",
      `The state directory ${root} can't be used: ${reason}\nGive SCRAPER_STATE_DIRECTORY a folder that this user may write.`,
      { cause },
    );
  }
  return {
    root,
    lock: join(root, "up.lock"),
    postgres: join(root, "postgres"),
    redis: join(root, "redis"),
    artifacts: join(root, "artifacts"),
    logs: join(root, "logs"),
    run: join(root, "run"),
    secrets: join(root, "secrets.json"),
    credentials: join(root, "credentials.json"),
    processes: join(root, "processes.json"),
    demo: join(root, "demo.json"),
    site: join(root, "site.json"),
  };
}

/**
 * Makes a folder and its missing parents, one by one. Node 20's own `recursive` spins for ever where an existing parent
 * answers ENOENT, as /proc does.
 */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process may have made it meanwhile.
    if (!existsSync(folder)) throw error;
  }
}

/** Replaces a JSON file in one step, mode 0600: a reader sees the old or the new one, never a part. */
export function writeStateFile(file: string, value: unknown): void {
  writeFileSync(`${file}.new`, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(`${file}.new`, file);
}

/** The strings of a flat JSON object; null when the file is absent or not such an object. */
export function readStateFile(file: string): Readonly<Record<string, string>> | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(readFileSync(file, "utf8"));
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null) return null;
  const entries = Object.entries(parsed).filter((entry): entry is [string, string] => typeof entry[1] === "string");
  return Object.fromEntries(entries);
}

function checkVersion(file: string): void {
  const version = readVersion(file);
  if (version === STATE_VERSION) return;
  if (version === null) {
    writeStateFile(file, { version: STATE_VERSION });
    return;
  }
  throw new CliError(
    "STATE_UNUSABLE",
    `${file} says version ${version}, and this program knows version ${STATE_VERSION}: it was written by a newer Keble Scraper.\n` +
      "Run that version, or give SCRAPER_STATE_DIRECTORY another folder. Nothing was changed.",
  );
}

function readVersion(file: string): number | null {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch {
    return null;
  }
  const parsed: unknown = JSON.parse(text);
  const version = typeof parsed === "object" && parsed !== null && "version" in parsed ? parsed.version : undefined;
  if (typeof version !== "number") throw new Error(`${file} names no version`);
  return version;
}
