import type { BinaryStore, Fence } from "@keble-scraper/artifact-store";
import type { Database } from "@keble-scraper/db";
import { type Clock, createRepeater, type Logger, type Repeater, type Signals } from "@keble-scraper/service";
import { deleteObjectsStep } from "../deletion/delete-objects-step.ts";
import { removeStraysStep } from "../deletion/remove-strays-step.ts";
import { scrubSteps } from "../scrub/scrub-steps.ts";
import type { RetentionSettings } from "../settings.ts";
import { createTick, type Step } from "./tick.ts";

/** What the store's upkeep works with. The store is open, and is the database's own. */
export type StoreUpkeepParts = {
  readonly settings: RetentionSettings;
  readonly database: Pick<Database, "commands">;
  readonly store: BinaryStore;
  readonly fence: Pick<Fence, "start">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signals: Signals;
  readonly logger: Logger;
};

/**
 * The loop of all maintenance that talks to the store, at the maintenance interval give or take a tenth. It is a loop of its
 * own, since a store that is slow or away may hold it up for longer than lost leases may wait for the other.
 */
export function createStoreUpkeep(parts: StoreUpkeepParts): Repeater {
  const { settings, store, clock, signals, logger } = parts;
  const sql = parts.database.commands;
  const { maintenanceMs } = settings.timings;
  const steps: readonly Step[] = [
    deleteObjectsStep({ sql, store, signals }),
    removeStraysStep({ store, clock }),
    ...scrubSteps({ ...parts, sql }),
  ];
  const tick = createTick(steps, logger);
  return createRepeater({
    name: "store-upkeep",
    async run(signal) {
      await tick(signal);
      return maintenanceMs * (0.9 + parts.random() * 0.2);
    },
    retryMs: maintenanceMs,
    clock,
    signals,
    logger,
  });
}
