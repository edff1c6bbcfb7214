import { StoreUnavailable } from "@keble-scraper/artifact-store";
import { expect, test, vi } from "vitest";
import { createUntilStored } from "./until-stored.ts";

function openPuts(failures: readonly Error[]) {
  const left = [...failures];
  let puts = 0;
  const told: string[] = [];
  const untilStored = createUntilStored({ random: () => 1, onAway: (error) => void told.push(error.code) });
  return {
    told,
    get puts() {
      return puts;
    },
    run: (signal: AbortSignal) =>
      untilStored(() => {
        puts += 1;
        const failure = left.shift();
        return failure === undefined ? Promise.resolve("stored") : Promise.reject(failure);
      }, signal),
  };
}

const away = (code = "ECONNREFUSED") => new StoreUnavailable(code);
const never = new AbortController().signal;

test("A1 a put is tried again until the store takes it, less and less often, and is told of once", async () => {
  vi.useFakeTimers();
  try {
    const puts = openPuts(Array.from({ length: 8 }, () => away()));
    const stored = puts.run(never);
    const at: number[] = [];
    for (let seconds = 0; puts.puts < 9; seconds += 0.5) {
      if (puts.puts > at.length) at.push(seconds);
      await vi.advanceTimersByTimeAsync(500);
    }
    expect(await stored).toBe("stored");
    expect(at).toEqual([0, 0.5, 1.5, 3.5, 7.5, 15.5, 25.5, 35.5]);
    expect(puts.told).toEqual(["ECONNREFUSED"]);
  } finally {
    vi.useRealTimers();
  }
});

test("A1 a run that is told to end waits for the store no more", async () => {
  const run = new AbortController();
  const puts = openPuts([away(), away()]);
  const stored = puts.run(run.signal);
  run.abort("LEASE_LOST");
  expect(await stored).toBeNull();
  expect(puts.puts).toBe(1);
});

test.each([
  ["a damaged spool file", away("SPOOL_DAMAGED")],
  ["a closed store", away("CLOSED")],
  ["a fault of ours", new Error("the key's hash is not the body's")],
])("%s is a fault at once", async (_, error) => {
  const puts = openPuts([error]);
  await expect(puts.run(never)).rejects.toBe(error);
  expect(puts.puts).toBe(1);
});
