import { expect, test } from "vitest";
import { createWriteGate } from "./write-gate.ts";

test("at most the given number of runs go at once, in order, and a throw frees its slot", async () => {
  const gate = createWriteGate(2);
  const started: number[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const runs = [0, 1, 2, 3].map(async (index) =>
    gate(
      async () =>
        new Promise<number>((resolve, reject) => {
          started.push(index);
          ends[index] = (error) => (error === undefined ? resolve(index) : reject(error));
        }),
    ),
  );
  const settled = Promise.allSettled(runs);
  const turn = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  await turn();
  expect(started).toEqual([0, 1]);
  ends[0]!(new Error("full"));
  await turn();
  expect(started).toEqual([0, 1, 2]);
  ends[1]!();
  await turn();
  expect(started).toEqual([0, 1, 2, 3]);
  ends[2]!();
  ends[3]!();
  expect((await settled).map((result) => result.status)).toEqual(["rejected", "fulfilled", "fulfilled", "fulfilled"]);
});
