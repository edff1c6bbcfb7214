import type { BinaryStore } from "@keble-scraper/artifact-store";
import type { Sql } from "@keble-scraper/db";
import {
  completeObjectDeletions,
  type ObjectDeletion,
  takeObjectDeletions,
} from "@keble-scraper/db/commands/artifacts";
import type { Signals } from "@keble-scraper/service";
import type { Step } from "../maintenance/tick.ts";

/** Objects that are taken at once: what a crash leaves to be deleted again. */
const TAKE_OBJECTS = 64;
/** Requests to the store at once. */
const DELETES_AT_ONCE = 8;
/** Objects of one round: seconds at a store that answers in 20 ms. */
const OBJECTS_MAX = 5_000;

/**
 * Deletes objects whose time has come: takes some, deletes them from the store, then their rows. After a fault of the store
 * nothing more is sent in this round; what was deleted until then is completed, and the rest is given out again later, as is
 * all that a killed process had taken.
 */
export function deleteObjectsStep(parts: {
  readonly sql: Sql;
  readonly store: Pick<BinaryStore, "delete">;
  readonly signals: Signals;
}): Step {
  const { signals, sql, store } = parts;

  async function deleteTaken(taken: readonly ObjectDeletion[], signal: AbortSignal): Promise<number> {
    const gone: string[] = [];
    const faults: unknown[] = [];
    let next = 0;
    async function deleteOn(): Promise<void> {
      for (let object = taken[next++]; object && faults.length === 0 && !signal.aborted; object = taken[next++]) {
        try {
          await store.delete({ sha256: object.sha256, generation: object.generation });
        } catch (error) {
          faults.push(error);
          return;
        }
        gone.push(object.id);
        await signals.reach("object.deleted", object);
      }
    }
    await Promise.all(Array.from({ length: Math.min(DELETES_AT_ONCE, taken.length) }, deleteOn));
    const completed = await completeObjectDeletions(sql, gone);
    await signals.reach("deletions.completed", gone);
    if (faults.length > 0) throw faults[0];
    return completed;
  }

  return {
    name: "objectsDeleted",
    async run(signal) {
      let total = 0;
      for (let left = OBJECTS_MAX; left > 0 && !signal.aborted; left -= TAKE_OBJECTS) {
        const taken = await takeObjectDeletions(sql, TAKE_OBJECTS);
        if (taken.length === 0) break;
        await signals.reach("objects.taken", taken);
        total += await deleteTaken(taken, signal);
      }
      return total;
    },
  };
}
