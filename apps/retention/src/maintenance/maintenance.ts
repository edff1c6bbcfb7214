import { type Database, findNextDeadlineMs, listDueJobs } from "@keble-scraper/db";
import { closeStrandedDeliveries, recoverDeliveries } from "@keble-scraper/db/commands/callbacks";
import { deferJobs, expireJobs, recoverLeases, sweepPassedHolds } from "@keble-scraper/db/commands/fetching";
import { purgeBatch } from "@keble-scraper/db/commands/retention";
import {
  type Bell,
  type Clock,
  createEndedAnnouncer,
  createRepeater,
  type Hints,
  type Logger,
  type Repeater,
  type Signals,
} from "@keble-scraper/service";
import { reviewStep } from "../deletion/review-step.ts";
import type { RetentionSettings } from "../settings.ts";
import { createPurge } from "../purge/create-purge.ts";
import { deadlineDelayMs } from "./deadline-delay.ts";
import { publishDueJobs } from "./publish-due-jobs.ts";
import { sweep } from "./sweep.ts";
import { createTick, type Step } from "./tick.ts";

/** Rows of one statement: tens of milliseconds, so that a stop waits for one of them only. */
const BATCH_ROWS = 500;

/** What maintenance works with. */
export type MaintenanceParts = {
  readonly settings: RetentionSettings;
  readonly database: Pick<Database, "commands">;
  readonly bell: Pick<Bell, "ring" | "publish">;
  readonly hints: Pick<Hints, "publish">;
  readonly clock: Clock;
  readonly random: () => number;
  readonly signals: Signals;
  readonly logger: Logger;
};

/**
 * The two loops of maintenance. `ticks` recovers, expires, closes and announces at its interval, give or take a tenth,
 * and when woken. `deadlines` ends jobs at their deadlines: it looks when the next one is due, at least once a second.
 */
export function createMaintenance(parts: MaintenanceParts): { readonly ticks: Repeater; readonly deadlines: Repeater } {
  const { settings, clock, signals, logger } = parts;
  const { maintenanceMs, abortGraceMs } = settings.timings;
  const sql = parts.database.commands;
  const jobRetentionMs = settings.retention.jobMs;

  const announce = createEndedAnnouncer(parts);
  const purge = createPurge({
    purgeBatch: (batch) => purgeBatch(sql, batch),
    rowsPerMinute: settings.retention.purgeRowsPerMinute,
    auditDays: settings.retention.auditDays,
    runMs: maintenanceMs / 3,
    clock,
    logger,
  });

  async function expireBatch(limit: number): Promise<number> {
    const ended = await expireJobs(sql, { limit, abortGraceMs, jobRetentionMs });
    announce(ended);
    return ended.length;
  }

  /** Holds and quarantines that have passed go, and their jobs are due. Which transports they are of is not known: both are rung. */
  async function resumeJobs(signal: AbortSignal): Promise<number> {
    let resumed = 0;
    await sweep(
      BATCH_ROWS,
      async (limit) => {
        const swept = await sweepPassedHolds(sql, { limit });
        resumed += swept.resumed;
        return Math.max(swept.holds, swept.clocks, swept.quarantines, swept.resumed);
      },
      signal,
    );
    if (resumed > 0) {
      parts.bell.ring("fetch", { transport: "HTTP" });
      parts.bell.ring("render", { transport: "RENDER" });
    }
    return resumed;
  }

  const steps: readonly Step[] = [
    {
      name: "leasesRecovered",
      run: (signal) =>
        sweep(
          BATCH_ROWS,
          async (limit) => {
            const { recovered, ended } = await recoverLeases(sql, { limit, jobRetentionMs });
            announce(ended);
            return recovered;
          },
          signal,
        ),
    },
    { name: "jobsExpired", run: (signal) => sweep(BATCH_ROWS, expireBatch, signal) },
    {
      name: "deliveriesRecovered",
      run: (signal) =>
        sweep(
          BATCH_ROWS,
          async (limit) => {
            const { recovered, requeued } = await recoverDeliveries(sql, limit);
            if (requeued > 0) {
              parts.bell.ring("callbacks", {});
            }
            return recovered;
          },
          signal,
        ),
    },
    {
      name: "deliveriesClosed",
      run: (signal) => sweep(BATCH_ROWS, (limit) => closeStrandedDeliveries(sql, limit), signal),
    },
    // Before due jobs are announced: what can't be taken is not rung for, and what can be taken again is.
    {
      name: "jobsDeferred",
      run: (signal) =>
        sweep(
          BATCH_ROWS,
          async (limit) => {
            const { taken, ended } = await deferJobs(sql, { limit, jobRetentionMs });
            announce(ended);
            return taken;
          },
          signal,
        ),
    },
    { name: "jobsResumed", run: (signal) => resumeJobs(signal) },
    {
      name: "jobsAnnounced",
      run: (signal) =>
        publishDueJobs(
          {
            list: (limit) => listDueJobs(sql, limit),
            publish: (kind, payload) => parts.bell.publish(kind, payload),
            concurrency: settings.publish.concurrency,
          },
          signal,
        ),
    },
    { name: "rowsPurged", run: (signal) => purge(signal) },
    reviewStep({
      sql,
      options: {
        artifactRetentionMs: settings.retention.artifactMs,
        evidenceRetentionMs: settings.retention.evidenceMs,
        urlMs: settings.artifacts.downloadUrlMs,
        auditRetentionDays: settings.retention.auditDays,
      },
      signals,
    }),
  ];
  const tick = createTick(steps, logger);

  return {
    ticks: createRepeater({
      name: "maintenance",
      async run(signal) {
        await tick(signal);
        return maintenanceMs * (0.9 + parts.random() * 0.2);
      },
      retryMs: maintenanceMs,
      clock,
      signals,
      logger,
    }),
    deadlines: createRepeater({
      name: "deadlines",
      async run(signal) {
        await sweep(BATCH_ROWS, expireBatch, signal);
        return deadlineDelayMs(await findNextDeadlineMs(sql), abortGraceMs);
      },
      retryMs: maintenanceMs,
      clock,
      signals,
      logger,
    }),
  };
}
