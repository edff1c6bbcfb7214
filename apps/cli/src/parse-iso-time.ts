const EARLIEST_MS = Date.parse("0001-01-01T00:00:00Z");
const LATEST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/** A time in ISO 8601 with a zone, any number of decimals, in the years 1 to 9999 (UTC); null for anything else. */
export function parseIsoTime(text: string): Date | null {
  if (!/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,12})?(?:Z|[+-]\d{2}:\d{2})$/.test(text)) return null;
  const ms = Date.parse(text);
  return ms >= EARLIEST_MS && ms <= LATEST_MS ? new Date(ms) : null;
}
