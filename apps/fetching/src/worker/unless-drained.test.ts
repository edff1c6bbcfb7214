import { expect, test, vi } from "vitest";
import { unlessDrained } from "./unless-drained.ts";

test("O4 work that ends within a second of the drain's grace is taken, later work is not waited for", async () => {
  vi.useFakeTimers();
  try {
    const drain = new AbortController();
    const soon = new Promise<string>((resolve) => setTimeout(() => resolve("done"), 900));
    const late = new Promise<string>((_, reject) => setTimeout(() => reject(new Error("gone")), 1_100));
    const ends = Promise.all([unlessDrained(soon, drain.signal), unlessDrained(late, drain.signal)]);
    drain.abort("DRAIN");
    await vi.advanceTimersByTimeAsync(2_000);
    expect(await ends).toEqual(["done", null]);
  } finally {
    vi.useRealTimers();
  }
});

test("work is waited for when the drain began before it, and whatever else ended the run", async () => {
  vi.useFakeTimers();
  try {
    const never = new Promise<string>(() => undefined);
    const drained = unlessDrained(never, AbortSignal.abort("DRAIN"));
    const work = new Promise<string>((resolve) => setTimeout(() => resolve("done"), 5_000));
    const cancelled = unlessDrained(work, AbortSignal.abort("CANCELLED"));
    await vi.advanceTimersByTimeAsync(6_000);
    expect(await drained).toBeNull();
    expect(await cancelled).toBe("done");
  } finally {
    vi.useRealTimers();
  }
});

test("work that fails is the caller's failure", async () => {
  const fault = new Error("the store is away");
  await expect(unlessDrained(Promise.reject(fault), new AbortController().signal)).rejects.toBe(fault);
});
