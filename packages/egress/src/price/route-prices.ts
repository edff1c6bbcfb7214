import type { PriceUnit, Route } from "@keble-scraper/contract";

/** What one unit of a route costs by its supplier's list, pay as you go, undiscounted. */
export type ListPrice = {
  readonly unit: PriceUnit;
  /** Micro-USD per unit; 0 when it is free. */
  readonly micros: number;
  /** The page that lists it. */
  readonly source: string;
  /** The date of the evidence; null when there is nothing to prove. */
  readonly asOf: string | null;
  /** How good the evidence is; empty when it is the supplier's own page. */
  readonly note: string;
};

const FREE: ListPrice = { unit: "FREE", micros: 0, source: "Our own network and machines", asOf: null, note: "" };

/**
 * The price list. Reservations are made at these prices unless an operator's setting says otherwise, so each is the
 * undiscounted one: a discount only makes the settled cost lower than what the supplier's own bill may show.
 */
export const ROUTE_PRICES: Readonly<Record<Route, ListPrice>> = {
  DIRECT: FREE,
  // Tiers of 1.30, 1.10 and 1.00 dollars per 1,000 start at monthly commitments; without one it is 1.50.
  UNLOCKER: {
    unit: "PER_REQUEST",
    micros: 1_500,
    source: "https://brightdata.com/pricing/web-unlocker",
    asOf: "2026-05-25",
    note: "Second-hand: a public plan file that cites the page, repeated in notes of 2026-09. Successful requests only.",
  },
  // The page also shows 4 dollars, which is a coupon's price.
  RESIDENTIAL: {
    unit: "PER_GIGABYTE",
    micros: 8_000_000,
    source: "https://brightdata.com/pricing/proxy-network/residential-proxies",
    asOf: "2026-09-23",
    note: "Second-hand: notes on the page's undiscounted figure, and an account's console in 2026-08.",
  },
  DATACENTER: {
    unit: "PER_GIGABYTE",
    micros: 600_000,
    source: "https://brightdata.com/pricing/proxy-network/datacenter-proxies",
    asOf: "2026-09-23",
    note: "Second-hand: a note on the page's indexed text. Bandwidth only; addresses are rented by the month besides.",
  },
  // 10 browser hours a month are included with the plan; they are not counted, so that a reservation never falls short.
  CLOUDFLARE_RENDER: {
    unit: "PER_BROWSER_HOUR",
    micros: 90_000,
    source: "https://developers.cloudflare.com/browser-run/pricing/",
    asOf: "2026-11-30",
    note: "",
  },
  LOCAL_RENDER: FREE,
};

/** Whether leaving by a route costs money, whatever its price is set to. */
export function isPaidRoute(route: Route): boolean {
  return ROUTE_PRICES[route].unit !== "FREE";
}
