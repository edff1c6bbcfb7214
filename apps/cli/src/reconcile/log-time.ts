const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const COMMON_LOG_TIME = /^(\d{2})\/([A-Z][a-z]{2})\/(\d{4}):(\d{2}):(\d{2}):(\d{2})(?: ([+-])(\d{2})(\d{2}))?$/;

/**
 * A time as access logs write it (`06/Feb/2019:00:00:38 +0000`); null for anything else. Without an offset it is read in
 * `offsetMinutes` from UTC.
 */
export function parseLogTime(text: string, offsetMinutes = 0): Date | null {
  const [, day, month = "", year, hour, minute, second, sign, offsetHours, offsetRest] =
    COMMON_LOG_TIME.exec(text) ?? [];
  const monthIndex = MONTHS.indexOf(month);
  if (monthIndex < 0) return null;
  const ms = Date.UTC(Number(year), monthIndex, Number(day), Number(hour), Number(minute), Number(second));
  const offset =
    sign === undefined ? offsetMinutes : (sign === "-" ? -1 : 1) * (Number(offsetHours) * 60 + Number(offsetRest));
  return new Date(ms - offset * 60_000);
}
