import { type BinaryStore, createFence, createStore } from "@keble-scraper/artifact-store";
import { findNamespace, hasStoredRows } from "@keble-scraper/db";
import {
  beginReset,
  deleteResetRows,
  findResetRun,
  finishReset,
  forgetResetObjects,
  listResetObjects,
  noteResetKeys,
  RESET_TABLES,
  takeResetTurn,
} from "@keble-scraper/db/commands/retention";
import { CliError } from "../cli-error.ts";
import { BY_CLI } from "../with-database.ts";
import { checkEvidence, requireFlags, type ResetFlags } from "./reset-evidence.ts";
import type { ResetParts } from "./reset-plan.ts";
import { deleteKeys } from "./reset-redis.ts";

const OBJECTS_PER_BATCH = 200;
const DELETES_AT_ONCE = 8;

/**
 * Carries a reset out: objects before their rows, then the fixed list of tables, then the keys of the namespace. A campaign that
 * broke off is gone on with, on the same evidence; one that is done changes nothing. Refused evidence touches nothing.
 */
export async function applyReset(parts: ResetParts, flags: ResetFlags): Promise<void> {
  const { context, settings, sql } = parts;
  const given = requireFlags(flags);
  if ("missing" in given) refuse(given.missing.map((name) => `${name}: is missing`));
  const { campaign } = given.value;
  const store = createStore(settings.artifacts.store);
  const giveBack = await takeResetTurn(sql);
  if (giveBack === null) refuse(["another reset of this database is under way"]);
  try {
    const run = await findResetRun(sql, campaign);
    if (run?.state === "DONE") {
      context.print(`${campaign} is done already`);
      return;
    }
    const checked = await checkEvidence(parts, given.value, run);
    if (!checked.ok) refuse(checked.faults);
    // The settings' store is the database's: else objects of somebody else's would be deleted.
    await store.start(context.stop);
    await createFence({
      store,
      owner: settings.artifacts.namespaceOwner,
      findNamespace: () => findNamespace(sql),
      hasRows: () => hasStoredRows(sql),
    }).start(context.stop);
    await beginReset(sql, campaign, checked.value, BY_CLI, settings.retention.auditDays);
    await carryOut(parts, campaign, store).catch((error: unknown) => {
      context.printError(`${campaign} is not done: run the same command again`);
      throw error;
    });
  } finally {
    await store.stop(performance.now());
    await giveBack().catch(() => undefined);
  }
}

async function carryOut(parts: ResetParts, campaign: string, store: BinaryStore): Promise<void> {
  const { context, settings, sql } = parts;
  await deleteNamedObjects(parts, campaign, store);
  for (const table of RESET_TABLES) {
    // Rows that name objects: whoever wrote meanwhile, a service that was started too early, left some with their objects.
    if (table === "object_deletions") await deleteNamedObjects(parts, campaign, store);
    do throwIfStopped(context.stop);
    while ((await deleteResetRows(sql, campaign, table)) > 0);
  }
  await deleteKeys(settings.redis.url, settings.redis.prefix, (count) => noteResetKeys(sql, campaign, count));
  const gone = await finishReset(sql, campaign, BY_CLI, settings.retention.auditDays);
  if (gone === null) throw new Error("the reset's run is gone");
  context.print(`${campaign} is done: ${gone.objects} objects, ${gone.rows} rows, ${gone.keys} keys of Redis are gone`);
}

/** Deletes every object that a row names, then those rows, batch by batch. */
async function deleteNamedObjects({ context, sql }: ResetParts, campaign: string, store: BinaryStore): Promise<void> {
  for (;;) {
    throwIfStopped(context.stop);
    const objects = await listResetObjects(sql, OBJECTS_PER_BATCH);
    if (objects.length === 0) return;
    await deleteObjects(store, objects);
    await forgetResetObjects(sql, campaign, objects);
  }
}

/** Deletes all of them, or throws once those under way have ended. */
async function deleteObjects(
  store: BinaryStore,
  objects: readonly { readonly sha256: string; readonly generation: string }[],
): Promise<void> {
  const left = [...objects];
  async function work(): Promise<void> {
    for (let next = left.pop(); next !== undefined; next = left.pop()) await store.delete(next);
  }
  const ends = await Promise.allSettled(Array.from({ length: DELETES_AT_ONCE }, work));
  for (const end of ends) if (end.status === "rejected") throw end.reason;
}

function refuse(faults: readonly string[]): never {
  throw new CliError("USAGE", `Nothing was touched. The reset is refused:\n${faults.join("\n")}`);
}

function throwIfStopped(stop: AbortSignal): void {
  if (stop.aborted) throw new CliError("FAULT", "Stopped between two batches.");
}
