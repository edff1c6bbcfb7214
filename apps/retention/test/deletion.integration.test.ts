import { StoreUnavailable } from "@keble-scraper/artifact-store";
import { createLogger, NO_SIGNALS } from "@keble-scraper/service";
import { createTestSignals, S3_FAULTS } from "@keble-scraper/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { deleteObjectsStep } from "../src/deletion/delete-objects-step.ts";
import { removeStraysStep } from "../src/deletion/remove-strays-step.ts";
import { reviewStep } from "../src/deletion/review-step.ts";
import { createTick } from "../src/maintenance/tick.ts";
import { type DeletionRig, openDeletionRig } from "./deletion-rig.ts";

const never = new AbortController().signal;

let rig: DeletionRig;
beforeAll(async () => {
  rig = await openDeletionRig();
});
afterAll(() => rig[Symbol.asyncDispose]());
beforeEach(async () => {
  await rig.database.commands`update artifacts set review_at = 'infinity'`;
  expect(await rig.left()).toEqual({ deletions: 0, deleting: 0 });
});

const deleter = (signals = createTestSignals(), store = rig.store) =>
  deleteObjectsStep({ sql: rig.database.commands, store, signals });

const reviewer = (signals = createTestSignals()) =>
  reviewStep({
    sql: rig.database.commands,
    options: {
      artifactRetentionMs: 86_400_000,
      evidenceRetentionMs: 86_400_000,
      urlMs: rig.settings.artifacts.downloadUrlMs,
      auditRetentionDays: 400,
    },
    signals,
  });

test("A3 what nothing holds is marked, its object deleted after the last URL, its rows gone; what is held stays", async () => {
  const kept = await rig.storeBytes(Buffer.from("kept"));
  const [gone] = await rig.storeUnheld(1);
  const signals = createTestSignals();
  expect(await reviewer(signals).run(never)).toBe(1);
  await signals.reached("artifacts.marked");
  expect(await deleter().run(never)).toBe(0);
  expect(rig.keys()).toContain(gone);
  await rig.ageDeletions();
  expect(await deleter().run(never)).toBe(1);
  expect(rig.keys()).not.toContain(gone);
  expect(rig.keys()).toContain(await rig.objectOf(kept.artifactId));
  expect(await rig.left()).toEqual({ deletions: 0, deleting: 0 });
});

/**
 * The deleter may stand still anywhere, and meanwhile a job may fetch the very same bytes. They are another object under
 * another generation: were they not, the deleter would take the new ones along when it goes on.
 */
test.each(["objects.taken", "object.deleted", "deletions.completed"])(
  "A3 equal bytes that are stored while the deleter stands at %s live on",
  async (point) => {
    const bytes = Buffer.from(`once more at ${point}`);
    const first = await rig.storeBytes(bytes);
    const oldKey = await rig.objectOf(first.artifactId);
    await rig.letGo(first.jobIds);
    await rig.markAll();
    const signals = createTestSignals();
    const hold = signals.hold(point);
    const deleting = deleter(signals).run(never);
    await hold.held;
    const second = await rig.storeBytes(bytes);
    hold.release();
    expect(await deleting).toBe(1);
    const newKey = await rig.objectOf(second.artifactId);
    expect(second.artifactId).not.toBe(first.artifactId);
    expect(rig.keys()).toContain(newKey);
    expect(rig.keys()).not.toContain(oldKey);
    expect((await rig.s3.bytes(newKey!)).equals(bytes)).toBe(true);
  },
);

test("A3 equal bytes that are stored while their blob is marked, and before its object is due, live on", async () => {
  const bytes = Buffer.from("once more, marked");
  const first = await rig.storeBytes(bytes);
  await rig.letGo(first.jobIds);
  await rig.markAll();
  const second = await rig.storeBytes(bytes);
  expect(await deleter().run(never)).toBe(1);
  expect(rig.keys()).toContain(await rig.objectOf(second.artifactId));
});

test("A1 equal bytes of fifty jobs at once are one object in the end", async () => {
  const { artifactId } = await rig.storeBytes(Buffer.from("fifty"), 50);
  const key = await rig.objectOf(artifactId);
  const of = () => rig.keys().filter((name) => name.startsWith(key!.slice(0, "artifacts/".length + 64)));
  expect(of()).toHaveLength(50);
  expect(await deleter().run(never)).toBe(49);
  expect(of()).toEqual([key]);
});

test("two deleters at once delete each object once", async () => {
  const keys = await rig.storeUnheld(100);
  await rig.markAll();
  const before = rig.s3.requests().length;
  const [first, second] = await Promise.all([deleter().run(never), deleter().run(never)]);
  expect(first + second).toBe(100);
  const deletes = rig.s3
    .requests()
    .slice(before)
    .filter((request) => request.operation === "DeleteObject");
  expect(deletes.map((request) => request.key).toSorted()).toEqual(keys.toSorted());
});

test("no more than eight deletes are under way at once", async () => {
  await rig.storeUnheld(20);
  await rig.markAll();
  let atOnce = 0;
  let atOnceMax = 0;
  const store = {
    ...rig.store,
    async delete(...args: Parameters<typeof rig.store.delete>) {
      atOnce += 1;
      atOnceMax = Math.max(atOnceMax, atOnce);
      await rig.store.delete(...args);
      atOnce -= 1;
    },
  };
  expect(await deleter(createTestSignals(), store).run(never)).toBe(20);
  expect(atOnceMax).toBe(8);
});

test("a store that fails ends the round, is logged once, and everything goes on when it is back", async () => {
  const keys = await rig.storeUnheld(30);
  await rig.markAll();
  const lines: string[] = [];
  const logger = createLogger({
    name: "test",
    level: "info",
    destination: { write: (line: string) => void lines.push((JSON.parse(line) as { msg: string }).msg) },
  });
  const tick = createTick([deleter()], logger);
  const fault = rig.s3.fail(
    { operation: "DeleteObject", key: keys[10]!, times: Number.POSITIVE_INFINITY },
    S3_FAULTS.FORBIDDEN,
  );
  await tick(never);
  await rig.ageDeletions();
  await tick(never);
  expect(lines.filter((line) => line === "maintenance.step_failed")).toHaveLength(1);
  expect((await rig.left()).deletions).toBeGreaterThan(0);
  // What was deleted before the fault is not asked for again, and the object that can't be deleted keeps its row.
  expect(rig.keys()).toContain(keys[10]);
  fault.lift();
  await rig.ageDeletions();
  await tick(never);
  expect(lines.filter((line) => line.startsWith("maintenance.step"))).toEqual([
    "maintenance.step_failed",
    "maintenance.step_recovered",
  ]);
  expect(await rig.left()).toEqual({ deletions: 0, deleting: 0 });
  expect(rig.keys().filter((key) => keys.includes(key))).toEqual([]);
});

test("a store that is down keeps every row, and all of it goes when it is back", async () => {
  const keys = await rig.storeUnheld(3);
  await rig.markAll();
  await rig.s3.stop();
  await expect(deleter().run(never)).rejects.toThrow(StoreUnavailable);
  expect(await rig.left()).toEqual({ deletions: 3, deleting: 3 });
  await rig.s3.start();
  expect(await deleter().run(never)).toBe(0);
  await rig.ageDeletions();
  expect(await deleter().run(never)).toBe(3);
  expect(rig.keys().filter((key) => keys.includes(key))).toEqual([]);
});

test("a delete whose answer is slow or lost is made again without harm", async () => {
  const [slow, lost] = await rig.storeUnheld(2);
  await rig.markAll();
  const answered = createTestSignals();
  const hold = answered.hold("answer");
  rig.s3.fail({ operation: "DeleteObject", key: slow! }, { kind: "DELAY", until: answered.reach("answer") });
  rig.s3.fail({ operation: "DeleteObject", key: lost! }, { kind: "LOSE_ANSWER" });
  const first = deleter().run(never);
  await hold.held;
  // Its next try is due while it still waits: another deleter takes it.
  await rig.s3.waitForArrival((request) => request.operation === "DeleteObject" && request.key === slow);
  await rig.ageDeletions();
  const second = await deleter().run(never);
  hold.release();
  expect((await first) + second).toBe(2);
  expect(await rig.left()).toEqual({ deletions: 0, deleting: 0 });
  expect(rig.keys().filter((key) => key === slow || key === lost)).toEqual([]);
});

test("a stop ends a round between two deletes, and what was deleted is completed", async () => {
  await rig.storeUnheld(20);
  await rig.markAll();
  const stopper = new AbortController();
  const stopping = {
    ...NO_SIGNALS,
    reach(point: string) {
      if (point === "object.deleted") stopper.abort();
    },
  };
  const done = await deleteObjectsStep({ sql: rig.database.commands, store: rig.store, signals: stopping }).run(
    stopper.signal,
  );
  expect(done).toBeGreaterThan(0);
  expect(done).toBeLessThanOrEqual(8);
  expect(await rig.left()).toEqual({ deletions: 20 - done, deleting: 20 - done });
  await rig.ageDeletions();
  expect(await deleter().run(never)).toBe(20 - done);
});

test("what broken-off writes left is removed when a process begins, then once an hour, and after a fault at once", async () => {
  let nowMs = 1_000_000;
  const asked: number[] = [];
  let isDown = true;
  const step = removeStraysStep({
    store: {
      removeStrays(before) {
        asked.push(before.getTime());
        return isDown ? Promise.reject(new Error("down")) : Promise.resolve(2);
      },
    },
    clock: { monotonicMs: () => nowMs, wallMs: () => 1_700_000_000_000 + nowMs },
  });
  await expect(step.run(never)).rejects.toThrow("down");
  isDown = false;
  expect(await step.run(never)).toBe(2);
  expect(await step.run(never)).toBe(0);
  nowMs += 3_599_999;
  expect(await step.run(never)).toBe(0);
  nowMs += 1;
  expect(await step.run(never)).toBe(2);
  expect(asked).toHaveLength(3);
  expect(asked.at(-1)).toBe(1_700_000_000_000 + nowMs - 86_400_000);
});
