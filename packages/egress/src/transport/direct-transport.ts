import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { createDevelopmentParts, type DevelopmentEgress } from "./development-egress.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./egress-limits.ts";
import { fetchAttempt } from "./fetch-attempt.ts";
import { createRobotsGate } from "../robots/robots-gate.ts";
import { createRobotsFetch } from "./robots-fetch.ts";
import { createPinnedClient, type PinnedClientOverrides } from "./pinned-client.ts";
import { createRunningAttempts } from "./running-attempts.ts";
import { createStop } from "./stop.ts";
import type { Transport } from "./transport.ts";

/** What a direct transport is made of. */
export type DirectTransportOptions = {
  readonly resolver: Resolver;
  /** What may be fetched; absent means public addresses only. */
  readonly policy?: VetUrlOptions;
  readonly limits?: Partial<EgressLimits>;
  /** Identifies the fetcher to sites, with the product token KebleScraper. */
  readonly userAgent?: string;
  /** Development and test only: everything but listed targets goes out by this proxy, and `resolver` answers listed names only. */
  readonly developmentEgress?: DevelopmentEgress;
  readonly clock?: { monotonicMs(): number; wallMs(): number };
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

/** The name that sites' robots.txt address us by. */
export const PRODUCT_TOKEN = "KebleScraper";

/** The User-Agent of a deployment that set none. */
export const DEFAULT_USER_AGENT = `${PRODUCT_TOKEN}/0.1 (self-hosted fetch service)`;

/** Rules of one origin take about a kilobyte. */
const ROBOTS_ORIGINS_MAX = 10_000;

const SYSTEM_CLOCK = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };

/** Fetches from this machine's own addresses, with a pool of its own. */
export function createDirectTransport(options: DirectTransportOptions): Transport {
  const { policy = {}, clock = SYSTEM_CLOCK, userAgent = DEFAULT_USER_AGENT, overrides = {} } = options;
  const limits: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, ...options.limits };
  const development =
    options.developmentEgress === undefined
      ? null
      : createDevelopmentParts({ egress: options.developmentEgress, system: options.resolver, policy, overrides });
  const { resolver } = development ?? options;
  const client = createPinnedClient({ resolver, policy, limits, overrides, dial: development?.dial });
  const running = createRunningAttempts(client);
  const scope = { transport: "HTTP", route: "DIRECT" } as const;
  const parts = { client, policy, limits, userAgent, clock, scope, meter: null } as const;
  const robots = createRobotsGate({
    fetchRobots: createRobotsFetch(parts, running),
    productToken: PRODUCT_TOKEN,
    cacheMaxEntries: ROBOTS_ORIGINS_MAX,
  });

  return {
    fetch(request, sink, control) {
      const stop = createStop({
        signal: control.signal,
        deadline: request.deadline,
        limitMs: request.attemptLimitMs,
        nowMs: clock.monotonicMs(),
      });
      return running.track(
        stop,
        fetchAttempt(
          request,
          sink,
          { stop, admit: control.admit },
          { ...parts, robots: request.robots === "RESPECT" ? robots : null },
        ),
      );
    },
    async close(deadline) {
      await running.close(deadline);
      await development?.close();
    },
    sockets: () => client.sockets() + (development?.sockets() ?? 0),
  };
}
