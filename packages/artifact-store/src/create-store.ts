import type { BinaryStore } from "./binary-store.ts";
import { createLocalStore } from "./local-store.ts";

/** Where an S3-compatible service keeps objects, and by which key. The endpoint has no path. */
export type S3Settings = {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly prefix: string;
  readonly region: string;
  /** OSS: no aws-chunked bodies, and its own header for "do not overwrite". */
  readonly dialect: "S3" | "OSS";
  readonly addressing: "PATH" | "VIRTUAL_HOST";
};

/** Which backend a deployment has. */
export type StoreSettings =
  | { readonly kind: "LOCAL"; readonly directory: string }
  | ({ readonly kind: "S3" } & S3Settings);

/** The prefix below which this product keeps artifacts in a local directory. */
export const ARTIFACT_PREFIX = "artifacts";

/** The store that the settings name, durable: what every process of a deployment opens. */
export function createStore(settings: StoreSettings): BinaryStore {
  if (settings.kind === "LOCAL") return createLocalStore({ directory: settings.directory, prefix: ARTIFACT_PREFIX });
  throw new Error("the S3 store is not part of this build");
}
