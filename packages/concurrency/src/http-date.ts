const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAY = "(?:mon|tue|wed|thu|fri|sat|sun)";
const LONG_DAY = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)";
const MONTH = `(?<month>${MONTHS.join("|")})`;
const TIME = "(?<hour>\\d{2}):(?<minute>\\d{2}):(?<second>\\d{2})";
const ZONE = "(?:gmt|utc|ut|z|(?<sign>[+-])(?<zoneHour>\\d{2})(?<zoneMinute>\\d{2}))";

/** The three forms RFC 9110 5.6.7 names, the first with the numeric or missing zone that mail software writes. */
const FORMS = [
  new RegExp(`^(?:${DAY}, )?(?<day>\\d{1,2}) ${MONTH} (?<year>\\d{4}) ${TIME}(?: ${ZONE})?$`, "i"),
  new RegExp(`^${LONG_DAY}, (?<day>\\d{2})-${MONTH}-(?<shortYear>\\d{2}) ${TIME}(?: ${ZONE})?$`, "i"),
  new RegExp(`^${DAY} ${MONTH} (?<day>[ \\d]\\d) ${TIME} (?<year>\\d{4})$`, "i"),
];

/** An HTTP-date is 29 characters, RFC 850's at most 33; what is longer is not read at all. */
const LENGTH_MAX = 64;

/**
 * Epoch milliseconds of an HTTP-date (IMF-fixdate, RFC 850 or asctime), null for anything else, ISO 8601 included.
 * A missing zone means UTC; the name of the weekday is not compared with the date. `nowMs` (epoch milliseconds) only
 * decides the century of RFC 850's two-digit year. `Date.parse` is no alternative: it reads asctime as local time and
 * finds a date in "5, 6".
 */
export function parseHttpDate(value: string | null | undefined, nowMs: number): number | null {
  if (value === null || value === undefined || value.length > LENGTH_MAX) return null;
  const text = value.trim();
  for (const form of FORMS) {
    const groups = form.exec(text)?.groups;
    if (groups !== undefined) return toEpochMs(groups, nowMs);
  }
  return null;
}

function toEpochMs(groups: Record<string, string | undefined>, nowMs: number): number | null {
  const month = MONTHS.indexOf((groups["month"] ?? "").toLowerCase());
  const [day, hour, minute, second] = [groups["day"], groups["hour"], groups["minute"], groups["second"]].map(Number);
  if (day === undefined || hour === undefined || minute === undefined || second === undefined) return null;
  // 60 is a leap second and rolls into the next minute.
  if (hour > 23 || minute > 59 || second > 60) return null;
  const zone = zoneOffsetMs(groups);
  if (zone === null) return null;

  const at = (year: number): number | null => {
    // Not Date.UTC: it turns the years 0 to 99 into 1900 to 1999.
    const date = new Date(0);
    date.setUTCFullYear(year, month, day);
    if (date.getUTCMonth() !== month || date.getUTCDate() !== day) return null;
    return date.setUTCHours(hour, minute, second) - zone;
  };
  const shortYear = groups["shortYear"];
  return shortYear === undefined ? at(Number(groups["year"])) : atShortYear(Number(shortYear), at, nowMs);
}

function zoneOffsetMs(groups: Record<string, string | undefined>): number | null {
  if (groups["sign"] === undefined) return 0;
  const hours = Number(groups["zoneHour"]);
  const minutes = Number(groups["zoneMinute"]);
  if (hours > 23 || minutes > 59) return null;
  return (groups["sign"] === "-" ? -1 : 1) * (hours * 60 + minutes) * 60_000;
}

/** RFC 9110 5.6.7: a date that seems more than 50 years ahead means the latest past year with these digits. */
function atShortYear(shortYear: number, at: (year: number) => number | null, nowMs: number): number | null {
  const now = new Date(nowMs);
  const fiftyYearsAhead = new Date(nowMs).setUTCFullYear(now.getUTCFullYear() + 50);
  const century = Math.floor(now.getUTCFullYear() / 100) * 100;
  for (const year of [century + 100 + shortYear, century + shortYear, century - 100 + shortYear]) {
    const atMs = at(year);
    if (atMs !== null && atMs <= fiftyYearsAhead) return atMs;
  }
  return null;
}
