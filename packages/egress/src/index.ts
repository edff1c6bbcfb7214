export { createCachingResolver, type CachingResolverOptions, DNS_TTL_MS_MAX } from "./dns/caching-resolver.ts";
export { createDohResolver, type DohResolver, type DohResolverOptions } from "./dns/doh-resolver.ts";
export {
  createResolver,
  type DnsFailureKind,
  type ResolveOutcome,
  type Resolver,
  type ResolverOptions,
} from "./dns/resolver.ts";
export {
  type AllowedTargets,
  type AllowedTargetsResult,
  isAllowedTarget,
  NO_ALLOWED_TARGETS,
  parseAllowedTargets,
} from "./policy/allowed-targets.ts";
export { type Cidr, parseCidr } from "./policy/cidr.ts";
export { type AddressClass, type AddressPolicy, classifyAddress, isPublicAddress } from "./policy/classify-address.ts";
export { isRedirectStatus, type NextUrl, nextUrl } from "./policy/next-url.ts";
export { allowedTargetsOf } from "./policy/allowed-targets-of.ts";
export { ownAddresses } from "./policy/own-addresses.ts";
export type { Reach } from "./policy/reach.ts";
export { vetAddresses, type VetAddressesOptions, type VetAddressesResult } from "./policy/vet-addresses.ts";
export {
  type CallbackPolicy,
  type CallbackUrlReason,
  vetCallbackUrl,
  type VetCallbackUrlResult,
} from "./policy/vet-callback-url.ts";
export { type UrlReason, vetUrl, type VettedUrl, type VetUrlOptions, type VetUrlResult } from "./policy/vet-url.ts";
export type { BodySink } from "./transport/body-stage.ts";
export {
  type CallbackOutcome,
  type CallbackRequest,
  type CallbackTransport,
  type CallbackTransportOptions,
  createCallbackTransport,
} from "./transport/callback-transport.ts";
export { createDirectTransport, type DirectTransportOptions } from "./transport/direct-transport.ts";
export { DEFAULT_USER_AGENT, PRODUCT_TOKEN } from "./transport/user-agent.ts";
export type { DevelopmentEgress } from "./transport/development-egress.ts";
export { ADMIT_ALL, type AdmitHop, type Hop, type HopVerdict, type HopWait } from "./transport/admission.ts";
export { hostKeyOf } from "./transport/host-key.ts";
export type { Transport } from "./transport/transport.ts";
export { DEFAULT_EGRESS_LIMITS, type EgressLimits, socketCeilingBytes } from "./transport/egress-limits.ts";
export {
  type AttemptUsage,
  FREE_USAGE,
  type FetchOutcome,
  type FetchResponse,
  type FetchTimings,
  type RefusedBody,
} from "./transport/fetch-outcome.ts";
export { createSocketMeter, type SocketMeter } from "./transport/socket-meter.ts";
export type { FetchControl, FetchRequest } from "./transport/fetch-request.ts";
export type { PinnedClientOverrides } from "./transport/pinned-client.ts";
export type { Framing, ResponseHeaders } from "./transport/response-head.ts";
export { isAllowed, parseRobots, ROBOTS_BYTES_MAX, type RobotsRules } from "./robots/parse-robots.ts";
export {
  createRobotsGate,
  robotsUrl,
  type FetchRobots,
  type RobotsGate,
  type RobotsGateOptions,
  type RobotsResponse,
  type RobotsVerdict,
} from "./robots/robots-gate.ts";
export { BLOCK_PATTERNS, BLOCK_SAMPLE_BYTES_MAX, type BlockPageName } from "./block-pages/block-patterns.ts";
export { type BlockPage, type BlockSample, detectBlockPage } from "./block-pages/detect-block-page.ts";
export { detectCharset, type Charset } from "./content/detect-charset.ts";
export { matchesContentTypes } from "./content/media-type.ts";
export { SNIFF_BYTES_MAX, sniffType } from "./content/sniff-type.ts";
export { type QuarantineAdvice, quarantineOf } from "./supplier-failures.ts";
export { attemptMicros, worstAttemptMicros } from "./price/attempt-micros.ts";
export { isPaidRoute, type ListPrice, ROUTE_PRICES } from "./price/route-prices.ts";
export { probeCloudflare, type CloudflareApi } from "./providers/probe-cloudflare.ts";
export { probeUnlocker, type UnlockerApi } from "./providers/probe-unlocker.ts";
export type { ProbeOptions, ProbeResult } from "./providers/probe.ts";
export { canNarrow, type Narrowing, type ProxyProvider } from "./proxy/proxy-credentials.ts";
export type { TunnelTarget } from "./proxy/connect-dialer.ts";
export { probeProxy, type ProxyProbeOptions } from "./proxy/probe-proxy.ts";
export { createProxyTransport, type ProxyRoute, type ProxyTransportOptions } from "./proxy/proxy-transport.ts";
export {
  type CloudflareRenderTransportOptions,
  createCloudflareRenderTransport,
} from "./providers/cloudflare-render-transport.ts";
export type { WaitUntil } from "./providers/cloudflare-request.ts";
export { createUnlockerTransport, type UnlockerTransportOptions } from "./providers/unlocker-transport.ts";
