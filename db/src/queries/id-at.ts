/**
 * How far the clock that made a row's id may be from the database's, in milliseconds: a process makes the id, the database
 * writes the time beside it.
 */
export const CLOCKS_APART_MS = 86_400_000;

/** The lowest UUID version 7 of a millisecond; times that an id can't carry are moved to the nearest that it can. */
export function firstIdAt(ms: number): string {
  const hex = Math.min(Math.max(Math.floor(ms), 0), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, "0");
  return `${hex.slice(0, 8)}-${hex.slice(8)}-0000-0000-000000000000`;
}
