import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { claimTestStore } from "@keble-scraper/db/testing";
import { createTestSignals, testRedis } from "@keble-scraper/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createMaintenanceWorker } from "../src/app.ts";
import { type DeletionRig, openDeletionRig, parseEnv } from "./deletion-rig.ts";

let rig: DeletionRig;
let env: Record<string, string>;
beforeAll(async () => {
  rig = await openDeletionRig();
  await claimTestStore(rig.settings, rig.testDatabase);
  const redis = await testRedis();
  env = { ...rig.env, SCRAPER_REDIS_URL: redis.url, SCRAPER_REDIS_PREFIX: redis.prefix.replaceAll(":", "") };
});
afterAll(() => rig[Symbol.asyncDispose]());

/** Runs a maintenance worker that kills itself at the point, until it has. */
async function dieAt(point: string): Promise<void> {
  const flags = ["--conditions=@keble-scraper/source", "--import", "tsx"];
  const script = join(import.meta.dirname, "maintenance-child.ts");
  const child = spawn(process.execPath, [...flags, script, JSON.stringify(env), point], { stdio: "inherit" });
  const [code, signal] = (await once(child, "exit")) as [number | null, string | null];
  if (signal !== "SIGKILL") throw new Error(`the worker ended by itself (${code}) before ${point}`);
}

/**
 * Between the store and the database there is no common commit: a worker that dies there has deleted objects whose rows say
 * that they are to be deleted. The next one deletes them again, which is nothing, and ends the rows.
 */
test("A3 maintenance killed after the mark, and between an object and its row: the next one goes on", async () => {
  const kept = await rig.storeBytes(Buffer.from("kept"));
  const gone = await rig.storeBytes(Buffer.from("gone"));
  const goneKey = await rig.objectOf(gone.artifactId);
  await rig.letGo(gone.jobIds);
  await dieAt("artifacts.marked");
  expect(await rig.objectOf(gone.artifactId)).toBeNull();
  expect(await rig.left()).toEqual({ deletions: 1, deleting: 1 });
  expect(rig.keys()).toContain(goneKey);
  await rig.ageDeletions();
  await dieAt("object.deleted");
  expect(rig.keys()).not.toContain(goneKey);
  expect(await rig.left()).toEqual({ deletions: 1, deleting: 1 });
  // Equal bytes are stored in between: they are another object.
  const again = await rig.storeBytes(Buffer.from("gone"));
  await rig.ageDeletions();
  const signals = createTestSignals();
  const worker = createMaintenanceWorker(parseEnv(env), { signals });
  await worker.start();
  await signals.reached("deletions.completed", (ids) => (ids as string[]).length === 1);
  await worker.stop(5_000);
  expect(await rig.left()).toEqual({ deletions: 0, deleting: 0 });
  expect(rig.keys()).toEqual(
    expect.arrayContaining([await rig.objectOf(kept.artifactId), await rig.objectOf(again.artifactId)]) as string[],
  );
  expect(rig.keys()).toHaveLength(2);
});
