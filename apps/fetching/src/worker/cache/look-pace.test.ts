import { expect, test } from "vitest";
import { createLookPace } from "./look-pace.ts";

function open() {
  const clock = { ms: 0 };
  return { clock, pace: createLookPace(() => clock.ms) };
}

const book = (pace: ReturnType<typeof createLookPace>, looks: number, callerId = "acme") =>
  Array.from({ length: looks }, () => pace.nextInMs(callerId));

test("A7 the few that wait for another's fetch look again each second", () => {
  const { clock, pace } = open();
  for (let second = 0; second < 5; second += 1) {
    expect(new Set(book(pace, 200))).toEqual(new Set([1_000]));
    clock.ms += 1_000;
  }
});

test("J9 many that wait make 200 looks a second, half a minute apart at the most, and slow down no other caller", () => {
  const { clock, pace } = open();
  const dues = book(pace, 5_000);
  for (let second = 1; second < 25; second += 1) {
    expect(dues.filter((ms) => ms > second * 1_000 && ms <= (second + 1) * 1_000)).toHaveLength(200);
  }
  expect(dues.at(-1)).toBe(25_000);
  expect(pace.nextInMs("globex")).toBe(1_000);
  expect(Math.max(...book(pace, 5_000))).toBe(30_000);
  clock.ms += 40_000;
  expect(pace.nextInMs("acme")).toBe(1_000);
});

test("A7 looks that are not needed any more delay no later ones", () => {
  const { pace } = open();
  book(pace, 5_000);
  pace.giveBack("acme", 4_900);
  pace.giveBack("globex", 1);
  expect(pace.nextInMs("acme")).toBe(1_000);
});
