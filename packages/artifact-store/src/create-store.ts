import type { BinaryStore } from "./binary-store.ts";
import { createLocalStore } from "./local-store.ts";

/** Which backend a deployment has. */
export type StoreSettings = { readonly kind: "LOCAL"; readonly directory: string };

/** The prefix below which this product keeps artifacts, in every backend. */
export const ARTIFACT_PREFIX = "artifacts";

/** The store that the settings name, durable, with the one prefix: what every process of a deployment opens. */
export function createStore(settings: StoreSettings): BinaryStore {
  return createLocalStore({ directory: settings.directory, prefix: ARTIFACT_PREFIX });
}
