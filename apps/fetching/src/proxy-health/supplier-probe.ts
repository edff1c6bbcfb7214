import type { Route, UpstreamCode } from "@keble-scraper/contract";
import type { ProbeResult } from "@keble-scraper/egress";

/** One question to a supplier. */
export type ProbeQuestion = {
  /** The failure that closed the route: a probe goes as far as it takes to prove that it is over. */
  readonly quarantinedFor: UpstreamCode;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
};

/** Asks a supplier whether it would serve us. `ok` is proof that it would; a failure is its own words, or silence. */
export type SupplierProbe = (question: ProbeQuestion) => Promise<ProbeResult>;

/** The probes of this deployment. A route without a supplier, or whose supplier is not configured, has none. */
export type SupplierProbes = ReadonlyMap<Route, SupplierProbe>;
