import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import {
  findLiveWriters,
  findNamespace,
  findWriteSince,
  getDatabaseIdentity,
  isPast,
  readInventory,
} from "@keble-scraper/db";
import {
  findResetPlan,
  findRunningCampaign,
  type ResetEvidence,
  type ResetRun,
} from "@keble-scraper/db/commands/retention";
import { parseIsoTime } from "../parse-iso-time.ts";
import { appRoleOf, type ResetParts } from "./reset-plan.ts";

/** What a reset's name looks like. */
export const CAMPAIGN = /^[a-z0-9][a-z0-9.-]{0,63}$/u;

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;

/** The eight pieces of evidence as given, each of them perhaps missing. */
export type ResetFlags = {
  readonly campaign?: string;
  readonly writerStop?: string;
  readonly database?: string;
  readonly redis?: string;
  readonly artifactOwner?: string;
  readonly snapshot?: string;
  readonly inventory?: string;
  readonly audit?: string;
};

/** What the flags are called on the command line. */
const NAMES: Readonly<Record<keyof ResetFlags, string>> = {
  campaign: "--campaign",
  writerStop: "--writer-stop",
  database: "--database",
  redis: "--redis",
  artifactOwner: "--artifact-owner",
  snapshot: "--snapshot",
  inventory: "--inventory",
  audit: "--audit",
};

/** Whole evidence, or every fault of it, each beginning with its flag. */
export type CheckedEvidence =
  | { readonly ok: true; readonly value: ResetEvidence }
  | { readonly ok: false; readonly faults: readonly string[] };

/**
 * Looks at all eight pieces and at what they are about, changing nothing. `run` is the campaign's that broke off, null: none.
 * Then what its own deletions have changed (what was written, what is in the inventory, what the audit row says) is compared
 * with what it recorded.
 */
export async function checkEvidence(
  parts: ResetParts,
  flags: Required<ResetFlags>,
  run: ResetRun | null,
): Promise<CheckedEvidence> {
  const { settings, sql } = parts;
  const faults: string[] = [];
  const fault = (flag: keyof ResetFlags, text: string) => faults.push(`${NAMES[flag]}: ${text}`);

  const database = await getDatabaseIdentity(sql);
  if (flags.database !== database) fault("database", `this is ${database}`);
  if (flags.redis !== settings.redis.prefix) fault("redis", `the deployment's namespace is ${settings.redis.prefix}`);
  const owner = (await findNamespace(sql))?.owner;
  if (flags.artifactOwner !== owner || owner !== settings.artifacts.namespaceOwner) {
    fault(
      "artifactOwner",
      `the database's artifacts belong to ${owner ?? "nobody"}, the settings name ${settings.artifacts.namespaceOwner}`,
    );
  }
  const snapshot = await hashSnapshot(flags.snapshot, flags.writerStop);
  if (!snapshot.ok) fault("snapshot", snapshot.why);
  for await (const why of checkWriters(parts, flags.writerStop, run)) fault("writerStop", why);
  if (run === null) {
    const { sha256, objects } = await readInventory(sql);
    if (flags.inventory !== sha256) fault("inventory", `the ${objects} objects of now have ${sha256}`);
    const running = await findRunningCampaign(sql);
    if (running !== null) fault("campaign", `${running} was begun and is not done: carry that out first`);
    const plan = UUID.test(flags.audit) ? await findResetPlan(sql, flags.audit) : null;
    if (plan === null) fault("audit", "there is no dry run with this id");
    else if (plan.campaign !== flags.campaign) fault("audit", `that dry run is of the campaign ${plan.campaign}`);
    else if (plan.inventory !== flags.inventory) fault("audit", "that dry run has another inventory");
    else if (plan.database !== database) fault("audit", "that dry run is of another database");
  }
  const value: ResetEvidence = {
    writerStop: flags.writerStop,
    database: flags.database,
    redis: flags.redis,
    artifactOwner: flags.artifactOwner,
    snapshot: snapshot.ok ? snapshot.sha256 : "",
    inventory: flags.inventory,
    audit: flags.audit,
  };
  if (run !== null) {
    for (const [name, shown] of Object.entries(run.evidence)) {
      const flag = name as keyof ResetEvidence;
      if (value[flag] !== shown) fault(flag, `the run that broke off was shown ${shown}`);
    }
  }
  return faults.length === 0 ? { ok: true, value } : { ok: false, faults };
}

/** All flags, or the names of those that are missing or blank. */
export function requireFlags(
  flags: ResetFlags,
): { readonly value: Required<ResetFlags> } | { readonly missing: string[] } {
  const names = Object.keys(NAMES) as (keyof ResetFlags)[];
  const missing = names.filter((name) => (flags[name] ?? "").trim() === "").map((name) => NAMES[name]);
  return missing.length > 0 ? { missing } : { value: flags as Required<ResetFlags> };
}

async function* checkWriters(
  { settings, sql }: ResetParts,
  writerStop: string,
  run: ResetRun | null,
): AsyncGenerator<string> {
  const { connections, leases } = await findLiveWriters(sql, appRoleOf(settings.database));
  if (connections.length > 0) {
    yield `these may write: ${connections.map(({ application, pid }) => `${application} (${pid})`).join(", ")}`;
  }
  if (leases > 0) yield `${leases} leases are not over yet: wait for their end`;
  if (parseIsoTime(writerStop) === null) yield "it must be a moment such as 2026-11-30T18:00:00Z";
  else if (!(await isPast(sql, writerStop))) yield "it must be over";
  else if (run === null) {
    const table = await findWriteSince(sql, writerStop);
    if (table !== null) yield `${table} was written to after it`;
  }
}

type Snapshot = { readonly ok: true; readonly sha256: string } | { readonly ok: false; readonly why: string };

async function hashSnapshot(file: string, writerStop: string): Promise<Snapshot> {
  try {
    const stats = await stat(file);
    if (!stats.isFile()) return { ok: false, why: "it must be a file" };
    if (stats.size === 0) return { ok: false, why: "it is empty" };
    if (Math.ceil(stats.mtimeMs) < Date.parse(writerStop))
      return { ok: false, why: "it was written before the writers stopped" };
    const hash = createHash("sha256");
    for await (const chunk of createReadStream(file) as AsyncIterable<Buffer>) hash.update(chunk);
    return { ok: true, sha256: hash.digest("hex") };
  } catch {
    return { ok: false, why: "it can't be read" };
  }
}
