import type { BinaryKey } from "../binary-key.ts";
import { type BinaryStore, LIST_PAGE_MAX } from "../binary-store.ts";
import { claimOwner } from "../claim-owner.ts";
import { createFaulting } from "../store-unavailable.ts";
import { createWriteGate } from "../write-gate.ts";
import { headObject } from "./head-object.ts";
import { listObjects } from "./list-objects.ts";
import { putOwnerObject, readOwnerObject } from "./owner-object.ts";
import { putObject } from "./put-object.ts";
import { readObject } from "./read-object.ts";
import { removeUploads } from "./remove-uploads.ts";
import { loadSdk, openS3Client, type S3Client } from "./s3-client.ts";
import { type S3Context, toObjectName } from "./s3-context.ts";
import { toS3Fault } from "./s3-fault.ts";
import { S3_TUNING, type S3Settings, type S3Tuning } from "./s3-settings.ts";
import { type S3Download, signDownload } from "./sign-download.ts";

/** A binary store that hands out links of its own: a download goes from the service to whoever holds the link. */
export type S3Store = BinaryStore & { signDownload(download: S3Download): Promise<string> };

/** Bodies that go in parts at once: each holds two connections, and more of them only share the same line. */
const LARGE_PUTS_MAX = 4;

const faulting = createFaulting(toS3Fault);

/**
 * A store in a bucket of an S3-compatible service. `start` makes no request, so that a service that is down keeps nobody from
 * starting: the fence and the health check ask it. A call that fails was tried three times by then.
 */
export function createS3Store(settings: S3Settings, tuning: Partial<S3Tuning> = {}): S3Store {
  let open: S3Client | null = null;
  const context: S3Context = {
    settings,
    tuning: { ...S3_TUNING, ...tuning },
    client() {
      if (open === null) throw new Error("the store is not started");
      return open;
    },
  };
  const asLargePut = createWriteGate(LARGE_PUTS_MAX);
  const nameOf = (key: BinaryKey): string => toObjectName(settings, key);

  return {
    name: "artifact-store",

    async start() {
      open ??= openS3Client(await loadSdk(), settings, context.tuning);
    },

    async stop() {
      open?.close();
      await Promise.resolve();
    },

    put: faulting(async (body, key) => {
      if (body.sha256 !== key.sha256) throw new Error("the key's hash is not the body's");
      const name = nameOf(key);
      const isLarge = body.sizeBytes > context.tuning.singlePutBytesMax;
      await (isLarge ? asLargePut(async () => putObject(context, body, name)) : putObject(context, body, name));
    }),

    head: faulting(async (key) => headObject(context, nameOf(key))),

    read: faulting(async (key, range) => readObject(context, nameOf(key), range)),

    delete: faulting(async (key) => {
      const s3 = context.client();
      const command = new s3.sdk.DeleteObjectCommand({ Bucket: settings.bucket, Key: nameOf(key) });
      await s3.call(async (sdk, options) => sdk.send(command, options));
    }),

    list: faulting(async (cursor, limit = LIST_PAGE_MAX) => listObjects(context, cursor, limit)),

    removeStrays: faulting(async (before, signal) => removeUploads(context, before, signal)),

    readOwner: faulting(async () => readOwnerObject(context)),

    claimOwner: faulting(async (text) =>
      claimOwner({ put: async () => putOwnerObject(context, text), read: async () => readOwnerObject(context) }),
    ),

    identity: () => ({
      kind: "S3",
      prefix: settings.prefix,
      endpoint: new URL(settings.endpoint).origin,
      bucket: settings.bucket,
    }),

    signDownload: faulting(async (download) => signDownload(context, download)),
  };
}
