import { allowedTargetsOf, type CallbackPolicy } from "@keble-scraper/egress";
import type { CallbacksSettings } from "./settings.ts";

/** Where callbacks of this deployment may go: one rule, when a URL is saved and at each send. */
export function callbackPolicyOf(settings: Pick<CallbacksSettings, "callbacks" | "environment">): CallbackPolicy {
  return {
    allowedCallbacks: allowedTargetsOf(settings.callbacks.allowedReceivers),
    environment: settings.environment,
  };
}
