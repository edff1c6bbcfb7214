import { upstreamFailure } from "@keble-scraper/contract";
import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { type Clock, SYSTEM_CLOCK } from "../transport/clock.ts";
import { DEFAULT_USER_AGENT } from "../transport/user-agent.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { PinnedClientOverrides } from "../transport/pinned-client.ts";
import type { Transport } from "../transport/transport.ts";
import type { UnlockerApi } from "./probe-unlocker.ts";
import { createProviderClient } from "./provider-client.ts";
import { createProviderTransport } from "./provider-transport.ts";
import { callUnlocker } from "./unlocker-call.ts";

/** What the transport of UNLOCKER is made of. */
export type UnlockerTransportOptions = {
  readonly api: UnlockerApi;
  readonly resolver: Resolver;
  /** What may be fetched; absent means public addresses only. The final URL that the provider reports is held to it, too. */
  readonly policy?: VetUrlOptions;
  readonly limits?: Partial<EgressLimits>;
  /** What the provider's API sees of us; the provider chooses what sites see. */
  readonly userAgent?: string;
  readonly clock?: Clock;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

/**
 * Fetches through Bright Data's Web Unlocker. `format: "raw"`: the body's bytes come as the target sent them, as a stream,
 * and its status in a header; the JSON form would carry them as text and lose every binary file. Throws when the API's URL
 * may not be called.
 */
export function createUnlockerTransport(options: UnlockerTransportOptions): Transport {
  const { api, resolver, policy = {}, clock = SYSTEM_CLOCK, userAgent = DEFAULT_USER_AGENT, overrides } = options;
  const client = createProviderClient({
    api: { url: api.url, token: api.apiKey },
    route: "UNLOCKER",
    resolver,
    policy,
    limits: options.limits,
    userAgent,
    overrides,
  });
  const parts = { api, client, policy, clock };
  return createProviderTransport({
    protocol: {
      origin: "PAID_EGRESS",
      refuse: ({ method }) =>
        method === "GET" ? null : upstreamFailure("PROVIDER_POLICY", { nativeCode: "METHOD_NOT_OFFERED" }),
      send: (ask, sink, context) => callUnlocker(ask, sink, context, parts),
      unwrapRobots: (body) => body,
    },
    client,
    clock,
  });
}
