import { z } from "zod";

/** A moment in an answer: RFC 3339, UTC, exactly three decimals (`2026-11-30T17:00:00.000Z`). */
export const Time = z.iso.datetime({ precision: 3 });
export type Time = z.infer<typeof Time>;

const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");
const YEARS = "Only the years 1 to 9999 (UTC) can be told.";

/**
 * A moment in a request: RFC 3339 with any offset and at most nine decimals, in the years 1 to 9999 (UTC), which the
 * database can read. It stays the text that was sent.
 */
export const TimeInput = z.iso
  .datetime({ offset: true })
  .max(40)
  .refine((text) => !(Date.parse(text) < EARLIEST_MS || Date.parse(text) > LATEST_MS), YEARS);
export type TimeInput = z.infer<typeof TimeInput>;

/** A day of the calendar (`2026-11-30`), in the years 1 to 9999. */
export const Day = z.iso.date().refine((text) => !text.startsWith("0000"), YEARS);
export type Day = z.infer<typeof Day>;

/** A date as RFC 3339 UTC with milliseconds. Throws a RangeError for an invalid date. */
export function formatTime(date: Date): Time {
  return date.toISOString();
}
