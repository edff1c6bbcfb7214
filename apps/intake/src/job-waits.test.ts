import type { Job } from "@keble-scraper/contract";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createJobWaits } from "./job-waits.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function jobThat(status: () => Job["status"]) {
  let reads = 0;
  return {
    read: () => {
      reads += 1;
      return Promise.resolve({ status: status() } as Job);
    },
    reads: () => reads,
  };
}
const never = new AbortController().signal;

test("a job that is terminal already is answered without waiting", async () => {
  const job = jobThat(() => "SUCCEEDED");
  expect(await createJobWaits().until(job.read, "a", 60_000, never)).toMatchObject({ status: "SUCCEEDED" });
  expect(job.reads()).toBe(1);
});

test("a hint makes the waiter look at once", async () => {
  let status: Job["status"] = "RUNNING";
  const job = jobThat(() => status);
  const waits = createJobWaits();
  const waiting = waits.until(job.read, "a", 60_000, never);
  await vi.advanceTimersByTimeAsync(10);
  status = "FAILED";
  waits.wake(["b", "a"]);
  expect(await waiting).toMatchObject({ status: "FAILED" });
  expect(job.reads()).toBe(2);
});

test("a job that ends while it is being read is not missed", async () => {
  const waits = createJobWaits();
  let reads = 0;
  const waiting = waits.until(
    () => {
      reads += 1;
      // The hint arrives while this read, which does not see the end yet, is on its way.
      if (reads === 1) waits.wake(["a"]);
      return Promise.resolve({ status: reads === 1 ? "RUNNING" : "CANCELLED" } as Job);
    },
    "a",
    60_000,
    never,
  );
  await vi.advanceTimersByTimeAsync(0);
  expect(await waiting).toMatchObject({ status: "CANCELLED" });
});

test("without a hint the waiter looks once a second, and answers the current state when its time is over", async () => {
  const job = jobThat(() => "QUEUED");
  const waiting = createJobWaits().until(job.read, "a", 2_500, never);
  await vi.advanceTimersByTimeAsync(2_500);
  expect(await waiting).toMatchObject({ status: "QUEUED" });
  expect(job.reads()).toBe(4);
});

test("a caller that goes away ends the wait", async () => {
  const job = jobThat(() => "QUEUED");
  const gone = new AbortController();
  const waiting = createJobWaits().until(job.read, "a", 60_000, gone.signal);
  await vi.advanceTimersByTimeAsync(10);
  gone.abort();
  expect(await waiting).toMatchObject({ status: "QUEUED" });
  expect(vi.getTimerCount()).toBe(0);
});

test("a job that nobody has ends the wait", async () => {
  expect(await createJobWaits().until(() => Promise.resolve(null), "a", 60_000, never)).toBeNull();
});

test("a release ends every wait, and those that come after it, with the job as it is", async () => {
  const waits = createJobWaits();
  const job = jobThat(() => "RUNNING");
  const waiting = ["a", "a", "b"].map((id) => waits.until(job.read, id, 60_000, never));
  await vi.advanceTimersByTimeAsync(10);
  waits.releaseAll();
  waiting.push(waits.until(job.read, "c", 60_000, never));
  await vi.advanceTimersByTimeAsync(0);
  expect(vi.getTimerCount()).toBe(0);
  for (const answer of await Promise.all(waiting)) expect(answer).toMatchObject({ status: "RUNNING" });
});
