import type { BinaryStore } from "./binary-store.ts";
import { createLocalStore } from "./local-store.ts";
import type { S3Settings } from "./s3/s3-settings.ts";
import { createS3Store } from "./s3/s3-store.ts";

/** Which backend a deployment has. */
export type StoreSettings =
  | { readonly kind: "LOCAL"; readonly directory: string }
  | ({ readonly kind: "S3" } & S3Settings);

/** The prefix below which this product keeps artifacts in a local directory. */
export const ARTIFACT_PREFIX = "artifacts";

/** The store that the settings name, durable: what every process of a deployment opens. */
export function createStore(settings: StoreSettings): BinaryStore {
  return settings.kind === "S3"
    ? createS3Store(settings)
    : createLocalStore({ directory: settings.directory, prefix: ARTIFACT_PREFIX });
}
