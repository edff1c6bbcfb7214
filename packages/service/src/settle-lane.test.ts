import { expect, test, vi } from "vitest";
import { createSettleLane } from "./settle-lane.ts";

type Verdict = { readonly token: string; readonly verdict: "SETTLED" | "STALE" };

function report(token: string): { readonly token: string } {
  return { token };
}

function laneOf(settle: (tokens: string[]) => Promise<void> | void, isBusy = () => false) {
  const groups: string[][] = [];
  const lane = createSettleLane<{ readonly token: string }, Verdict>({
    lanes: 1,
    stale: ({ token }) => ({ token, verdict: "STALE" }),
    async settleGroup(reports) {
      const tokens = reports.map((one) => one.token);
      groups.push(tokens);
      await settle(tokens);
      return tokens.map((token): Verdict => ({ token, verdict: "SETTLED" }));
    },
    isBusy,
    isOutage: (error) => error instanceof Error && error.message === "outage",
  });
  return { lane, groups };
}
const trusted = () => true;

test("a lone report is settled at once", async () => {
  const { lane, groups } = laneOf(() => undefined);
  expect(await lane.settle(report("a"), trusted)).toMatchObject({ token: "a", verdict: "SETTLED" });
  expect(groups).toEqual([["a"]]);
});

test("reports that come while slots are busy are settled together, at most 50 in one statement", async () => {
  const { lane, groups } = laneOf(
    () => undefined,
    () => true,
  );
  await Promise.all(Array.from({ length: 60 }, (_, index) => lane.settle(report(String(index)), trusted)));
  expect(groups.map((group) => group.length)).toEqual([50, 10]);
});

test("one row that the database refuses harms no other of its group", async () => {
  const { lane, groups } = laneOf(
    (tokens) => {
      if (tokens.includes("bad")) throw new Error("refused");
    },
    () => true,
  );
  const settled = await Promise.allSettled(["a", "bad", "c"].map((token) => lane.settle(report(token), trusted)));
  expect(settled.map((one) => one.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(groups).toEqual([["a", "bad", "c"], ["a"], ["bad"], ["c"]]);
});

test("J2 during an outage a report is sent again while its lease is trusted, and never after", async () => {
  vi.useFakeTimers();
  try {
    let isTrusted = true;
    const { lane, groups } = laneOf(() => {
      throw new Error("outage");
    });
    const settled = lane.settle(report("a"), () => isTrusted);
    await vi.advanceTimersByTimeAsync(600);
    expect(groups).toHaveLength(3);
    isTrusted = false;
    await vi.advanceTimersByTimeAsync(600);
    expect(await settled).toEqual({ token: "a", verdict: "STALE" });
    expect(groups).toHaveLength(3);
  } finally {
    vi.useRealTimers();
  }
});

test("J2 a report whose lease is no longer trusted is not sent at all", async () => {
  const { lane, groups } = laneOf(() => undefined);
  expect(await lane.settle(report("a"), () => false)).toMatchObject({ verdict: "STALE" });
  expect(groups).toEqual([]);
});

test("what comes while every lane is taken makes up the next group", async () => {
  let open = (): void => undefined;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const { lane, groups } = laneOf(() => gate);
  const all = ["a", "b", "c"].map((token) => lane.settle(report(token), trusted));
  expect(groups).toEqual([["a"]]);
  open();
  await Promise.all(all);
  expect(groups).toEqual([["a"], ["b", "c"]]);
});
