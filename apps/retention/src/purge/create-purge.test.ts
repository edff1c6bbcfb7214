import type { PurgeAnswer, PurgeBatch } from "@keble-scraper/db/commands/retention";
import { createLogger } from "@keble-scraper/service";
import { expect, test } from "vitest";
import { createPurge } from "./create-purge.ts";

const logger = createLogger({ name: "test", level: "silent" });
const never = new AbortController().signal;
const DONE: PurgeAnswer = { verdict: "PURGED", rows: 0, next: null };

type Answers = Partial<Record<PurgeBatch["kind"], (PurgeAnswer | Error)[]>>;

/** A purge whose batches take a millisecond each and answer as told, then that nothing is left. */
function open(answers: Answers, options: { runMs?: number; onBatch?: () => void } = {}) {
  const asked: PurgeBatch[] = [];
  let at = 0;
  const purge = createPurge({
    purgeBatch(batch) {
      asked.push(batch);
      at += 1;
      options.onBatch?.();
      const answer = answers[batch.kind]?.shift() ?? DONE;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
    },
    rowsPerMinute: 1_000,
    auditDays: 400,
    runMs: options.runMs ?? 1_000,
    clock: { monotonicMs: () => at, wallMs: () => 0 },
    logger,
  });
  return { purge, kinds: () => asked.map((batch) => batch.kind), asked };
}

const more = (rows: number, since: Date | null = null): PurgeAnswer => ({ verdict: "PURGED", rows, next: { since } });
const last = (rows: number): PurgeAnswer => ({ verdict: "PURGED", rows, next: null });
const ALL = ["events", "jobs", "cache", "flights", "tombstones", "findings", "budgets", "audit"];

test("R2 kinds take turns, each from where its batch before ended, until nothing is left", async () => {
  const since = new Date(5);
  const { purge, kinds, asked } = open({ events: [more(500, since), last(1)], audit: [more(500), last(2)] });
  expect(await purge(never)).toBe(1_003);
  expect(kinds()).toEqual([...ALL, "events", "audit"]);
  expect(asked.map((batch) => batch.since)).toEqual([...ALL.map(() => null), since, null]);
  expect(asked[1]).toEqual({ kind: "jobs", batch: 200, rowsPerMinute: 1_000, auditDays: 400, since: null });
});

test("R2 a kind whose rows of the minute have gone, and one that another purges, are left alone", async () => {
  const { purge, kinds } = open({ events: [{ verdict: "SPENT" }], jobs: [{ verdict: "BUSY" }], cache: [last(3)] });
  expect(await purge(never)).toBe(3);
  expect(kinds()).toEqual(ALL);
});

test("a kind that fails harms no other, and the fault is told in the end", async () => {
  const fault = new Error("away");
  const { purge, kinds } = open({ events: [fault], jobs: [more(200), last(1)] });
  await expect(purge(never)).rejects.toBe(fault);
  expect(kinds()).toEqual([...ALL, "jobs"]);
});

test("the rest of maintenance waits for a run no longer than it may take, and a batch", async () => {
  const { purge, kinds } = open({ events: Array.from({ length: 50 }, () => more(500)) }, { runMs: 10 });
  expect(await purge(never)).toBe(1_500);
  expect(kinds()).toEqual([...ALL, "events", "events"]);
});

test("a signal that aborts ends a run between two batches", async () => {
  const ending = new AbortController();
  let batches = 0;
  const { purge, kinds } = open(
    { events: [more(500), more(500)] },
    {
      onBatch() {
        batches += 1;
        if (batches === 2) ending.abort();
      },
    },
  );
  expect(await purge(ending.signal)).toBe(500);
  expect(kinds()).toEqual(["events", "jobs"]);
});
