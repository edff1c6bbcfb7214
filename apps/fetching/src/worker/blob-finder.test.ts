import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createBlobFinder } from "./blob-finder.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("hashes that are asked for together share a look-up, and each gets its own answer", async () => {
  const asked: string[][] = [];
  const finder = createBlobFinder((sha256s) => {
    asked.push([...sha256s]);
    return Promise.resolve([{ sha256: "b", id: "blob-b" }]);
  });
  const found = Promise.all(["a", "b", "b"].map((sha256) => finder.find(sha256)));
  await vi.advanceTimersByTimeAsync(5);
  expect(await found).toEqual([null, "blob-b", "blob-b"]);
  const later = finder.find("c");
  await vi.advanceTimersByTimeAsync(5);
  expect(await later).toBeNull();
  expect(asked).toEqual([["a", "b"], ["c"]]);
});

test("a look-up that fails fails all who share it, and the next is made anew", async () => {
  let isDown = true;
  const finder = createBlobFinder(() => (isDown ? Promise.reject(new Error("down")) : Promise.resolve([])));
  const found = Promise.allSettled([finder.find("a"), finder.find("b")]);
  await vi.advanceTimersByTimeAsync(5);
  expect((await found).map((one) => one.status)).toEqual(["rejected", "rejected"]);
  isDown = false;
  const later = finder.find("a");
  await vi.advanceTimersByTimeAsync(5);
  expect(await later).toBeNull();
});
