import { z } from "zod";
import { MicrosSum, Name } from "./id.ts";
import { ROUTES } from "./job-sets.ts";
import { Time, TimeInput } from "./time.ts";

/** The longest time that one question about usage spans: 92 days, so that every quarter fits. */
export const USAGE_DAYS_MAX = 92;
/** The time that is spanned when nobody says: the last 24 hours. */
export const USAGE_HOURS_DEFAULT = 24;
/** The most groups an answer lists, the dearest ones; `total` counts all. */
export const USAGE_GROUPS_MAX = 1_000;

/** What usage is summed by: the route, or the values of one label, `label:key`. */
export const UsageGroupBy = z
  .string()
  .max(70)
  .regex(/^(?:route|label:[A-Za-z0-9._-]{1,64})$/, "Write `route`, or a label as label:key.");
export type UsageGroupBy = z.infer<typeof UsageGroupBy>;

/**
 * Which usage. Attempts count by when they ended: from `from` (inclusive) to `to` (exclusive). `to` absent: now. `from`
 * absent: 24 hours before `to`. A service asks for its own caller's, whatever `callerId` says; an operator without it for all.
 */
export const UsageQuery = z.strictObject({
  from: TimeInput.optional(),
  to: TimeInput.optional(),
  groupBy: UsageGroupBy.default("route"),
  callerId: Name.optional(),
});
export type UsageQuery = z.infer<typeof UsageQuery>;

const count = z.int().min(0);

/** Sums over ended attempts. */
export const UsageSums = z.strictObject({
  attempts: count,
  /** Attempts that ended SUCCEEDED. */
  succeeded: count,
  /** Attempts that ended FAILED or LOST. */
  failed: count,
  /** Decoded. */
  bodyBytes: count,
  /** As they came over the socket. */
  wireBytes: count,
  costMicros: MicrosSum,
});
export type UsageSums = z.infer<typeof UsageSums>;

/** One group: a route, or a value of the label; null: jobs without it. */
export const UsageItem = z.union([
  z.strictObject({ route: z.enum(ROUTES), ...UsageSums.shape }),
  z.strictObject({ label: Name.nullable(), ...UsageSums.shape }),
]);
export type UsageItem = z.infer<typeof UsageItem>;

/** What was used in a time, the dearest group first. */
export const Usage = z.strictObject({
  from: Time,
  to: Time,
  groupBy: UsageGroupBy,
  items: z.array(UsageItem).max(USAGE_GROUPS_MAX),
  total: UsageSums,
});
export type Usage = z.infer<typeof Usage>;
