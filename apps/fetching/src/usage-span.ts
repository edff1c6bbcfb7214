import {
  type DetailedFailure,
  type Result,
  USAGE_DAYS_MAX,
  USAGE_HOURS_DEFAULT,
  type UsageQuery,
  failed,
  localFailure,
  ok,
} from "@keble-scraper/contract";

/** The time that a question about usage spans: `from` inclusive, `to` exclusive. */
export type UsageSpan = { readonly from: Date; readonly to: Date };

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Fills in the defaults, the last 24 hours up to `to` or now; a span that is empty, reversed or over 92 days is refused. */
export function readUsageSpan(
  query: Pick<UsageQuery, "from" | "to">,
  nowMs: number,
): Result<UsageSpan, DetailedFailure> {
  const toMs = query.to === undefined ? nowMs : Date.parse(query.to);
  const fromMs = query.from === undefined ? toMs - USAGE_HOURS_DEFAULT * HOUR_MS : Date.parse(query.from);
  if (fromMs >= toMs) return refused(query.to === undefined ? "It must lie in the past." : "It must be before `to`.");
  if (toMs - fromMs > USAGE_DAYS_MAX * DAY_MS)
    return refused(`At most ${USAGE_DAYS_MAX} days can be asked for at once.`);
  return ok({ from: new Date(fromMs), to: new Date(toMs) });
}

function refused(message: string): Result<UsageSpan, DetailedFailure> {
  return failed({ ...localFailure("INVALID_REQUEST"), details: [{ path: "from", message }] });
}
