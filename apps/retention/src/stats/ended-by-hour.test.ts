import { expect, test } from "vitest";
import { createEndedByHour } from "./ended-by-hour.ts";

const HOUR_MS = 3_600_000;
const NOON = Date.parse("2026-11-30T12:00:00Z");
const ENDED = { succeeded: 1, failed: 0, cancelled: 0, isLowerBound: false };

/** Counts take `countMs` each; the hours that were asked for are noted as hours before noon. */
function open(countMs = 0, fails: (hour: number) => boolean = () => false) {
  const asked: number[] = [];
  let at = 0;
  const read = createEndedByHour({
    count(hour) {
      const before = (NOON - hour.getTime()) / HOUR_MS;
      asked.push(before);
      at += countMs;
      return fails(before) ? Promise.reject(new Error("too long")) : Promise.resolve(ENDED);
    },
    clock: { monotonicMs: () => at, wallMs: () => 0 },
  });
  return { read: (minutes: number) => read(new Date(NOON + minutes * 60_000)), asked };
}

test("hours that are over are counted once, the hour that runs each time", async () => {
  const { read, asked } = open();
  expect(await read(30)).toHaveLength(25);
  expect(asked).toEqual(Array.from({ length: 25 }, (_, index) => index));
  asked.length = 0;
  expect((await read(31)).at(-1)?.hour).toBe("2026-11-30T12:00:00.000Z");
  expect(asked).toEqual([0]);
});

test("an hour that was over a moment ago is counted again: its last ends may not have been committed", async () => {
  const { read, asked } = open();
  await read(0.5);
  asked.length = 0;
  await read(0.9);
  expect(asked).toEqual([0, 1]);
  asked.length = 0;
  await read(1);
  await read(1);
  expect(asked).toEqual([0, 1, 0]);
});

test("the hours move on with the clock", async () => {
  const { read } = open();
  await read(0);
  const hours = await read(90);
  expect([hours[0]?.hour, hours.at(-1)?.hour]).toEqual(["2026-11-29T13:00:00.000Z", "2026-11-30T13:00:00.000Z"]);
});

test("hours that an answer has no time for are missing, the oldest first; later answers have them", async () => {
  const { read } = open(300);
  expect((await read(30)).map((row) => row.hour)).toHaveLength(7);
  expect(await read(30)).toHaveLength(13);
  expect((await read(30)).at(-1)?.hour).toBe("2026-11-30T12:00:00.000Z");
});

test("an hour that can't be counted ends the answer before it", async () => {
  const { read } = open(0, (before) => before === 2);
  expect(await read(30)).toMatchObject([{ hour: "2026-11-30T11:00:00.000Z" }, { hour: "2026-11-30T12:00:00.000Z" }]);
});
