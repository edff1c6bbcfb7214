import type { AllowedTargets } from "./allowed-targets.ts";
import type { AddressPolicy } from "./classify-address.ts";
import { type UrlReason, vetUrl, type VettedUrl } from "./vet-url.ts";

/** Where callbacks may go. `allowedCallbacks`: the operator's exact hosts and ports, which may be private and plain http. */
export type CallbackPolicy = AddressPolicy & {
  readonly allowedCallbacks: AllowedTargets;
  readonly environment: "development" | "test" | "staging" | "production";
};

/** Why a callback URL is refused. `https_required`: plain http to a host that is not listed. */
export type CallbackUrlReason = UrlReason | "https_required";

/** `block` is set when `reason` is `address`, and is for logs only. */
export type VetCallbackUrlResult =
  | { readonly ok: true; readonly url: VettedUrl }
  | { readonly ok: false; readonly reason: CallbackUrlReason; readonly block?: string };

/**
 * Vets a callback URL, when it is saved and again before each delivery: one rule for both. A listed receiver may be
 * private; it may be loopback in development and test only, and a metadata service never. The names of listed receivers
 * are held to that by `vetAddresses` with the URL's `reach`.
 */
export function vetCallbackUrl(raw: string, policy: CallbackPolicy): VetCallbackUrlResult {
  const { allowedCallbacks, environment, ...addresses } = policy;
  const isLocal = environment === "development" || environment === "test";
  const vetted = vetUrl(raw, {
    ...addresses,
    allowedTargets: allowedCallbacks,
    listedReach: isLocal ? "LOCAL" : "PRIVATE",
  });
  if (vetted.ok && vetted.url.protocol === "http:" && vetted.url.reach === "PUBLIC") {
    return { ok: false, reason: "https_required" };
  }
  return vetted;
}
