import type { WaitingJob } from "@keble-scraper/db/commands/fetching";
import { expect, test } from "vitest";
import type { ClaimedJob } from "../claimed-job.ts";
import { createFollowers } from "./followers.ts";

function open() {
  const woken: string[][] = [];
  const given = new Map<string, number>();
  const followers = createFollowers({
    wake: (jobs: readonly WaitingJob[]) =>
      Promise.resolve(woken.push(jobs.map(({ id, attemptNumber }) => `${id}@${attemptNumber}`))),
    onWoken: () => undefined,
    pace: { giveBack: (callerId, looks) => void given.set(callerId, (given.get(callerId) ?? 0) + looks) },
    logger: { warn: () => undefined } as never,
  });
  const job = (id: string, cacheKey: string | null = "k") =>
    ({ id, callerId: "acme", cacheKey, attemptNumber: 1 }) as ClaimedJob;
  return { followers, woken, given, job };
}

test("A7 an answer wakes all that wait for it, once, and nobody else", () => {
  const { followers, woken, given, job } = open();
  for (const id of ["a", "b"]) followers.wait(job(id));
  followers.wait(job("c", "other"));
  followers.wait(job("d", null));
  followers.wake("k", "ANSWERED");
  followers.wake("k", "ANSWERED");
  followers.wake(null, "ANSWERED");
  expect(woken).toEqual([["a@0", "b@0"]]);
  // Their booked looks are nobody's: the caller's next ones need not wait behind them.
  expect(given.get("acme")).toBe(2);
});

test("A7 an end without an answer wakes the one that waits longest, and one that came by itself is not woken", () => {
  const { followers, woken, job } = open();
  for (const id of ["a", "b", "c"]) followers.wait(job(id));
  expect([followers.came(job("a")), followers.came(job("a")), followers.came(job("z"))]).toEqual([true, false, false]);
  followers.wake("k", "NOT_ANSWERED");
  followers.wake("k", "NOT_ANSWERED");
  followers.wake("k", "NOT_ANSWERED");
  expect(woken).toEqual([["b@0"], ["c@0"]]);
});

test("what is remembered is bounded: the oldest key's jobs come by themselves; all others are woken, so many at a time", async () => {
  const { followers, woken, job } = open();
  for (let count = 0; count < 20_000; count += 1) followers.wait(job(String(count), count === 0 ? "old" : "k"));
  followers.wait(job("one more"));
  followers.wake("old", "ANSWERED");
  expect(woken).toEqual([]);
  followers.wake("k", "ANSWERED");
  for (let turn = 0; turn < 100 && woken.length < 20; turn += 1) await Promise.resolve();
  expect(woken.map((jobs) => jobs.length)).toEqual(Array(20).fill(1_000));
});
