export { classifyAddress, isPublicAddress, type AddressClass, type AddressPolicy } from "./policy/classify-address.ts";
export { parseCidr, type Cidr } from "./policy/cidr.ts";
export {
  isAllowedTarget,
  NO_ALLOWED_TARGETS,
  parseAllowedTargets,
  type AllowedTargets,
  type AllowedTargetsResult,
} from "./policy/allowed-targets.ts";
export {
  isRedirectStatus,
  nextUrl,
  type InvalidRedirectReason,
  type NextUrl,
  type RejectedRedirectReason,
} from "./policy/next-url.ts";
export { ownAddresses } from "./policy/own-addresses.ts";
export type { Reach } from "./policy/reach.ts";
export {
  vetAddresses,
  VETTED_ADDRESSES_MAX,
  type AddressReason,
  type VetAddressesOptions,
  type VetAddressesResult,
} from "./policy/vet-addresses.ts";
export {
  vetCallbackUrl,
  type CallbackPolicy,
  type CallbackUrlReason,
  type VetCallbackUrlResult,
} from "./policy/vet-callback-url.ts";
export { vetUrl, type UrlReason, type VettedUrl, type VetUrlOptions, type VetUrlResult } from "./policy/vet-url.ts";
export {
  createResolver,
  type DnsFailureKind,
  type ResolveOutcome,
  type Resolver,
  type ResolverOptions,
} from "./dns/resolver.ts";
