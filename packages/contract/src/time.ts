import { z } from "zod";

/** A moment in an answer: RFC 3339, UTC, exactly three decimals (`2026-11-30T17:00:00.000Z`). */
export const Time = z.iso.datetime({ precision: 3 });
export type Time = z.infer<typeof Time>;

/** A moment in a request: RFC 3339 with any offset and at most nine decimals. It stays the text that was sent. */
export const TimeInput = z.iso.datetime({ offset: true }).max(40);
export type TimeInput = z.infer<typeof TimeInput>;

/** A date as RFC 3339 UTC with milliseconds. Throws a RangeError for an invalid date. */
export function formatTime(date: Date): Time {
  return date.toISOString();
}
