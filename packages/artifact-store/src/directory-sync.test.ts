import { expect, test } from "vitest";
import { createDirectorySync } from "./directory-sync.ts";

function recorder() {
  const ends: ((error?: Error) => void)[] = [];
  const sync = createDirectorySync(
    async () =>
      new Promise((resolve, reject) => {
        ends.push((error) => (error === undefined ? resolve() : reject(error)));
      }),
  );
  return { ends, sync };
}

const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

// An entry that was made while a sync ran may not be in it: a call that joined the running one would say "durable" of a
// name that a power cut takes away.
test("A1 a call never takes part in a directory sync that began before it", async () => {
  const { ends, sync } = recorder();
  const done: string[] = [];
  const first = sync("/d").then(() => done.push("first"));
  const second = sync("/d").then(() => done.push("second"));
  const third = sync("/d").then(() => done.push("third"));
  expect(ends.length).toBe(1);
  ends[0]!();
  await turn();
  expect(done).toEqual(["first"]);
  expect(ends.length).toBe(2);
  const fourth = sync("/d").then(() => done.push("fourth"));
  ends[1]!();
  await turn();
  expect(done).toEqual(["first", "second", "third"]);
  ends[2]!();
  await Promise.all([first, second, third, fourth]);
  expect(ends.length).toBe(3);
});

test("directories are synced independently", async () => {
  const { ends, sync } = recorder();
  const both = Promise.all([sync("/a"), sync("/b")]);
  expect(ends.length).toBe(2);
  for (const end of ends) end();
  await both;
});

test("a failed sync fails its own calls, and the next call syncs anew", async () => {
  const { ends, sync } = recorder();
  const first = sync("/d");
  const second = sync("/d");
  ends[0]!(new Error("EIO"));
  await expect(first).rejects.toThrow("EIO");
  await turn();
  ends[1]!();
  await second;
  const third = sync("/d");
  expect(ends.length).toBe(3);
  ends[2]!();
  await third;
});
