import type { Failure, UpstreamCode } from "@keble-scraper/contract";

/**
 * How long a route is left alone after one of its failures. `forMs`: from now, above 0; null: until the next midnight UTC,
 * when a supplier's day begins anew.
 */
export type QuarantineAdvice = { readonly reason: UpstreamCode; readonly forMs: number | null };

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** A supplier's own date further away than this is not believed. */
const UNTIL_MS_MAX = 31 * 24 * HOUR_MS;

/** Actions that mend the account of a supplier, not one request. */
const ACCOUNT_ACTIONS: ReadonlySet<string> = new Set(["QUARANTINE_ROUTE", "FIX_CREDENTIALS", "PAY_SUPPLIER"]);

/**
 * Codes that concern the account, with how long until it is worth asking again. The horizons are ours: a password is
 * mended in minutes, a bill in hours; suppliers name none.
 */
const HORIZON_MS: Readonly<Partial<Record<UpstreamCode, number | null>>> = {
  PROVIDER_AUTH: 15 * MINUTE_MS,
  PROVIDER_PAYMENT: HOUR_MS,
  PROVIDER_QUOTA: null,
};

/**
 * Whether a failure says that every job of its route would fail alike, and for how long; null when it does not. A spent
 * quota with a `retryAt` lasts until then. `wallMs`: epoch milliseconds of the clock that `retryAt` was read by.
 */
export function quarantineOf(failure: Failure, wallMs: number = Date.now()): QuarantineAdvice | null {
  if (failure.kind !== "UPSTREAM" || failure.origin === "TARGET" || !ACCOUNT_ACTIONS.has(failure.action)) return null;
  const horizonMs = HORIZON_MS[failure.code];
  if (horizonMs === undefined) return null;
  const untilRetryMs = horizonMs === null ? msUntil(failure.retryAt, wallMs) : null;
  return { reason: failure.code, forMs: untilRetryMs ?? horizonMs };
}

function msUntil(retryAt: string | undefined, wallMs: number): number | null {
  const ms = retryAt === undefined ? Number.NaN : Date.parse(retryAt) - wallMs;
  return ms > 0 ? Math.min(Math.ceil(ms), UNTIL_MS_MAX) : null;
}
