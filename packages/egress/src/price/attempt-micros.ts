import { MICROS_MAX, type PriceUnit, type Robots, type Route } from "@keble-scraper/contract";
import { DEFAULT_EGRESS_LIMITS, socketCeilingBytes } from "../transport/egress-limits.ts";
import type { AttemptUsage } from "../transport/fetch-outcome.ts";
import { ROUTE_PRICES } from "./route-prices.ts";

/** Units that a price is divided by: bytes of a gigabyte, milliseconds of a browser hour. */
const PER = { PER_REQUEST: 1n, PER_GIGABYTE: 1_000_000_000n, PER_BROWSER_HOUR: 3_600_000n } as const;

/** A request for the page, and one for robots.txt where it is asked. */
const REQUESTS_PER_ATTEMPT = { RESPECT: 2, IGNORE: 1 } as const satisfies Record<Robots, number>;

/**
 * The most that one attempt may cost, in whole micro-USD, rounded up: what is reserved before anything is sent. By the
 * gigabyte: the socket ceiling that the transport enforces. By the request: one, and one more for robots.txt. By browser
 * time: the attempt's hard limit. 0 on free routes. `priceMicros` is per unit of the route. At most 2^53 - 1.
 */
export function worstAttemptMicros(attempt: {
  readonly route: Route;
  readonly priceMicros: number;
  /** Decoded. */
  readonly maxBodyBytes: number;
  readonly robots: Robots;
  readonly attemptMs: number;
}): number {
  const { unit } = ROUTE_PRICES[attempt.route];
  return costOf(unit, attempt.priceMicros, worstAmount(unit, attempt), Number.MAX_SAFE_INTEGER);
}

/**
 * What an attempt cost by what it used, in whole micro-USD, rounded up. A supplier that says it billed nothing is believed;
 * one that says nothing is taken to have billed. 0 on free routes. At most a million dollars, which is all that a ledger shows.
 */
export function attemptMicros(attempt: {
  readonly route: Route;
  readonly priceMicros: number;
  readonly usage: AttemptUsage;
}): number {
  const { unit } = ROUTE_PRICES[attempt.route];
  const isWaived = unit === "PER_REQUEST" && attempt.usage.isBilled === false;
  return isWaived ? 0 : costOf(unit, attempt.priceMicros, usedAmount(unit, attempt.usage), MICROS_MAX);
}

function worstAmount(
  unit: PriceUnit,
  { maxBodyBytes, robots, attemptMs }: Parameters<typeof worstAttemptMicros>[0],
): number {
  switch (unit) {
    case "FREE":
      return 0;
    case "PER_REQUEST":
      return REQUESTS_PER_ATTEMPT[robots];
    case "PER_GIGABYTE":
      return socketCeilingBytes(DEFAULT_EGRESS_LIMITS, maxBodyBytes);
    case "PER_BROWSER_HOUR":
      return attemptMs;
  }
}

function usedAmount(unit: PriceUnit, { requests, socketBytes, browserMs }: AttemptUsage): number {
  switch (unit) {
    case "FREE":
      return 0;
    case "PER_REQUEST":
      return requests;
    case "PER_GIGABYTE":
      return socketBytes;
    case "PER_BROWSER_HOUR":
      return browserMs;
  }
}

/** Exact: a price times an amount passes 2^53 long before either does. */
function costOf(unit: PriceUnit, priceMicros: number, amount: number, max: number): number {
  if (unit === "FREE") return 0;
  const product = toWhole(priceMicros) * toWhole(amount);
  const cost = (product + PER[unit] - 1n) / PER[unit];
  return cost > BigInt(max) ? max : Number(cost);
}

/** A part of a unit is a whole one. What is no amount at all is a fault: money is never guessed. */
function toWhole(amount: number): bigint {
  if (!Number.isFinite(amount) || amount < 0) throw new RangeError("an amount that is none was to be priced");
  return BigInt(Math.ceil(amount));
}
