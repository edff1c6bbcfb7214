import { allowedTargetsOf, type CallbackPolicy } from "@keble-scraper/egress";
import type { Logger } from "@keble-scraper/service";
import type { CallbacksSettings } from "./settings.ts";

/** Where callbacks of this deployment may go: one rule, when a URL is saved and at each send. */
export function callbackPolicyOf(settings: Pick<CallbacksSettings, "callbacks" | "environment">): CallbackPolicy {
  return {
    allowedCallbacks: allowedTargetsOf(settings.callbacks.allowedReceivers),
    environment: settings.environment,
  };
}

/** Says at start which receivers an operator has opened beyond the public ones: an opening nobody sees is forgotten. */
export function logAllowedReceivers(settings: Pick<CallbacksSettings, "callbacks">, logger: Logger): void {
  const receivers = settings.callbacks.allowedReceivers.map(({ host, port }) => `${host}:${port}`);
  if (receivers.length > 0) logger.info({ receivers }, "receivers.allowed");
}
