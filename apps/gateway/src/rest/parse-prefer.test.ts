import { expect, it } from "vitest";
import { parsePreferredWait } from "./parse-prefer.ts";

it.each([
  ["wait=5", 5],
  ["WAIT = 5", 5],
  ['wait="5"', 5],
  ["wait=5; foo=bar", 5],
  ["respond-async, wait=10", 10],
  ["wait=3, wait=9", 3],
  ["wait=60", 60],
  ["wait=61", 60],
  ["wait=999999999", 60],
])("%j waits %d s", (header, seconds) => {
  expect(parsePreferredWait(header)).toBe(seconds);
});

it.each([undefined, "", "wait", "wait=", "wait=0", "wait=-1", "wait=1.5", "wait=x", "wait=1e3", "waits=5", 'wait="5'])(
  "%j is passed over",
  (header) => {
    expect(parsePreferredWait(header)).toBeUndefined();
  },
);
