import { localFailure, type LocalFailure, type UpstreamFailure, upstreamFailure } from "@keble-scraper/contract";
import { matchesContentTypes } from "../content/media-type.ts";
import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { type Clock, SYSTEM_CLOCK } from "../transport/clock.ts";
import { DEFAULT_USER_AGENT } from "../transport/user-agent.ts";
import type { EgressLimits } from "../transport/egress-limits.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import type { PinnedClientOverrides } from "../transport/pinned-client.ts";
import type { Transport } from "../transport/transport.ts";
import { callCloudflare } from "./cloudflare-call.ts";
import { CAPTURE_TYPES, type WaitUntil } from "./cloudflare-request.ts";
import { unwrapChromeText } from "./chrome-text.ts";
import type { CloudflareApi } from "./probe-cloudflare.ts";
import { createProviderClient } from "./provider-client.ts";
import { createProviderTransport } from "./provider-transport.ts";

/** What the transport of CLOUDFLARE_RENDER is made of. */
export type CloudflareRenderTransportOptions = {
  readonly api: CloudflareApi;
  readonly resolver: Resolver;
  /** What may be fetched; absent means public addresses only. A final URL that the provider reports is held to it, too. */
  readonly policy?: VetUrlOptions;
  readonly limits?: Partial<EgressLimits>;
  /** What the API sees of us, and sites as long as a job sets no other. */
  readonly userAgent?: string;
  /** When a page counts as loaded; absent: with its load event. */
  readonly waitUntil?: WaitUntil;
  readonly clock?: Clock;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

/**
 * Renders through Cloudflare's Browser Rendering: the DOM by `/content`, pictures by `/screenshot`, documents by `/pdf`.
 * Throws when the API's URL may not be called.
 */
export function createCloudflareRenderTransport(options: CloudflareRenderTransportOptions): Transport {
  const { api, resolver, policy = {}, clock = SYSTEM_CLOCK, userAgent = DEFAULT_USER_AGENT, overrides } = options;
  const { waitUntil = "load" } = options;
  const client = createProviderClient({
    api: { url: api.url, token: api.apiToken },
    route: "CLOUDFLARE_RENDER",
    resolver,
    policy,
    limits: options.limits,
    userAgent,
    overrides,
  });
  const parts = { api, client, policy, clock, userAgent, waitUntil };
  return createProviderTransport({
    protocol: {
      origin: "BROWSER_PROVIDER",
      refuse,
      send: (ask, sink, context) => callCloudflare(ask, sink, context, parts),
      unwrapRobots: unwrapChromeText,
    },
    client,
    clock,
  });
}

/** What the API does not offer, and what is known to be unwanted before browser time is paid for it. */
function refuse({ method, capture, contentTypes }: FetchRequest): UpstreamFailure | LocalFailure | null {
  if (method !== "GET") return localFailure("NOT_SUPPORTED");
  if (capture === "MHTML") {
    return upstreamFailure("PROVIDER_POLICY", { origin: "BROWSER_PROVIDER", nativeCode: "CAPTURE_NOT_OFFERED" });
  }
  const isWanted = contentTypes === null || matchesContentTypes(CAPTURE_TYPES[capture], contentTypes);
  return isWanted ? null : upstreamFailure("UNWANTED_CONTENT_TYPE");
}
