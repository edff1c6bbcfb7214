import { z } from "zod";
import { Micros, MicrosSum } from "./id.ts";
import { ROUTES, TRANSPORTS } from "./job-sets.ts";
import { Time, TimeInput } from "./time.ts";

/**
 * What stands between a job and a route. QUARANTINED: configured, but no job leaves by it until it is lifted; jobs that
 * list it take their next route or wait. NOT_CONFIGURED: this deployment does not have it; a submit that lists it is refused.
 */
export const ROUTE_HEALTH = ["HEALTHY", "QUARANTINED", "NOT_CONFIGURED"] as const;
export type RouteHealth = (typeof ROUTE_HEALTH)[number];

/** What a route is paid by. A gigabyte is 10^9 bytes over the socket, both directions. */
export const PRICE_UNITS = ["FREE", "PER_REQUEST", "PER_GIGABYTE", "PER_BROWSER_HOUR"] as const;
export type PriceUnit = (typeof PRICE_UNITS)[number];

/** The longest quarantine with an end, and the furthest end: 30 days. */
export const QUARANTINE_SECONDS_MAX = 2_592_000;
/** Characters of an operator's note. */
export const QUARANTINE_NOTE_CHARACTERS_MAX = 500;

/** What one unit costs, undiscounted. `asOf` is the date of the evidence; null: an operator's setting, as `source` says. */
export const RoutePrice = z.strictObject({
  unit: z.enum(PRICE_UNITS),
  micros: Micros,
  source: z.string().max(300),
  asOf: z.iso.date().nullable(),
});
export type RoutePrice = z.infer<typeof RoutePrice>;

/** Why a route is closed to jobs. */
export const RouteQuarantine = z.strictObject({
  /** OPERATOR, the code of the failure that caused it, or COST_OVERRUN. */
  reason: z.string().max(64),
  /** The supplier's own code; null: none came. */
  nativeCode: z.string().max(100).nullable(),
  note: z.string().max(QUARANTINE_NOTE_CHARACTERS_MAX).nullable(),
  /** An API key's id, or `system:<part>`. */
  by: z.string().max(100),
  since: Time,
  /** Null: until somebody releases it. */
  until: Time.nullable(),
});
export type RouteQuarantine = z.infer<typeof RouteQuarantine>;

/** What a route spent in one period (UTC), what is out with running attempts, and its cap; null: none. */
export const RouteSpend = z.strictObject({
  settledMicros: MicrosSum,
  reservedMicros: MicrosSum,
  capMicros: Micros.nullable(),
});
export type RouteSpend = z.infer<typeof RouteSpend>;

/** A way out as operators see it. */
export const RouteInfo = z.strictObject({
  route: z.enum(ROUTES),
  /** Whether a job may leave by it now; `reason` says why not. */
  available: z.boolean(),
  reason: z.string().max(500).optional(),
  transport: z.enum(TRANSPORTS),
  health: z.enum(ROUTE_HEALTH),
  quarantine: RouteQuarantine.nullable(),
  /** Over all workers; null: no limit. */
  requestsPerSecond: z.number().min(0).nullable(),
  /** Over all workers; null: no limit. */
  concurrency: z.int().min(1).nullable(),
  /** Attempts that run by it now. */
  inFlight: z.int().min(0),
  /** Null: it is free. */
  price: RoutePrice.nullable(),
  /** The current day and month (UTC). Null: it is free. */
  spend: z.strictObject({ day: RouteSpend, month: RouteSpend }).nullable(),
});
export type RouteInfo = z.infer<typeof RouteInfo>;

/** Every way out the product knows, in one page. */
export const RouteInfoPage = z.strictObject({
  items: z.array(RouteInfo).max(ROUTES.length),
  nextCursor: z.null(),
});
export type RouteInfoPage = z.infer<typeof RouteInfoPage>;

/** The body that quarantines a route. Neither `seconds` nor `until`: until it is released. */
export const QuarantineRoute = z
  .strictObject({
    note: z
      .string()
      .min(1)
      .max(QUARANTINE_NOTE_CHARACTERS_MAX)
      .regex(/^\P{Cc}*$/u, "Control characters are not allowed.")
      .optional(),
    seconds: z.int().min(1).max(QUARANTINE_SECONDS_MAX).optional(),
    /** A moment ahead, at most 30 days. */
    until: TimeInput.optional(),
  })
  .refine(({ seconds, until }) => seconds === undefined || until === undefined, {
    path: ["until"],
    message: "Give `seconds` or `until`, not both.",
  });
export type QuarantineRoute = z.infer<typeof QuarantineRoute>;
