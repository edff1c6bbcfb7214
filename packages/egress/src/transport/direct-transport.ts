import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { createDevelopmentParts, type DevelopmentEgress } from "./development-egress.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "./egress-limits.ts";
import { fetchAttempt } from "./fetch-attempt.ts";
import { createRobotsGate } from "../robots/robots-gate.ts";
import { type Clock, SYSTEM_CLOCK } from "./clock.ts";
import { createRobotsFetch } from "./robots-fetch.ts";
import { createPinnedClient, type PinnedClientOverrides } from "./pinned-client.ts";
import { createRunningAttempts } from "./running-attempts.ts";
import { createAttemptStop } from "./stop.ts";
import type { Transport } from "./transport.ts";
import { DEFAULT_USER_AGENT, PRODUCT_TOKEN } from "./user-agent.ts";

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
  readonly clock?: Clock;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

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
  const robots = createRobotsGate({ fetchRobots: createRobotsFetch(parts, running), productToken: PRODUCT_TOKEN });

  return {
    fetch(request, sink, control) {
      const stop = createAttemptStop(request, control.signal, clock);
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
