import type { TryReport, TryVerdict } from "@keble-scraper/db/commands/callbacks";
import { describe, expect, it } from "vitest";
import { createSettleLane } from "./settle-lane.ts";

const OUTAGE = new Error("outage");
const report = (token: string) => ({ token }) as TryReport;
const stale = (token: string): TryVerdict => ({ token, verdict: "STALE" });
const always = () => true;

/** A lane whose groups are answered by `answers`, one after the other; the last one for ever. */
function laneOf(...answers: ((tokens: string[]) => Promise<TryVerdict[]>)[]) {
  const groups: string[][] = [];
  const lane = createSettleLane({
    settleGroup(reports) {
      const tokens = reports.map((one) => one.token);
      groups.push(tokens);
      const answer = answers[Math.min(groups.length, answers.length) - 1]!;
      return answer(tokens);
    },
    isOutage: (error) => error === OUTAGE,
  });
  return { lane, groups };
}

describe("createSettleLane", () => {
  it("sends a lone report at once, and what comes meanwhile as one group", async () => {
    let open = () => undefined as void;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const { lane, groups } = laneOf(async (tokens) => {
      await gate;
      return tokens.map(stale);
    });
    const all = ["a", "b", "c"].map((token) => lane.settle(report(token), always));
    expect(groups).toEqual([["a"]]);
    open();
    expect(await Promise.all(all)).toEqual(["a", "b", "c"].map(stale));
    expect(groups).toEqual([["a"], ["b", "c"]]);
  });

  it("settles 50 at most in one group", async () => {
    const { lane, groups } = laneOf((tokens) => Promise.resolve(tokens.map(stale)));
    await Promise.all(Array.from({ length: 120 }, (_, n) => lane.settle(report(String(n)), always)));
    expect(groups.map((group) => group.length)).toEqual([1, 50, 50, 19]);
  });

  it("one bad row harms no other: the members of a refused group are settled one by one", async () => {
    const refuse = (tokens: string[]) =>
      tokens.includes("bad") ? Promise.reject(new Error("refused")) : Promise.resolve(tokens.map(stale));
    const { lane, groups } = laneOf(refuse);
    const first = lane.settle(report("first"), always);
    const rest = ["a", "bad", "c"].map((token) => lane.settle(report(token), always));
    await first;
    const ends = await Promise.allSettled(rest);
    expect(ends.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(groups).toEqual([["first"], ["a", "bad", "c"], ["a"], ["bad"], ["c"]]);
  });

  it("J2 sends the same report again after an outage while its lease is trusted, and not a moment longer", async () => {
    let isTrusted = true;
    const { lane, groups } = laneOf(
      () => Promise.reject(OUTAGE),
      (tokens) => Promise.resolve(tokens.map(stale)),
    );
    expect(await lane.settle(report("a"), () => isTrusted)).toEqual(stale("a"));
    expect(groups).toEqual([["a"], ["a"]]);
    const cut = laneOf(() => {
      isTrusted = false;
      return Promise.reject(OUTAGE);
    });
    expect(await cut.lane.settle(report("b"), () => isTrusted)).toEqual(stale("b"));
    expect(cut.groups).toEqual([["b"]]);
  });

  it("J2 sends nothing for a lease that is not trusted", async () => {
    const { lane, groups } = laneOf((tokens) => Promise.resolve(tokens.map(stale)));
    expect(await lane.settle(report("a"), () => false)).toEqual(stale("a"));
    expect(groups).toEqual([]);
  });
});
