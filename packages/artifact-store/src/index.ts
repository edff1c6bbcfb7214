export {
  type BinaryKey,
  createGeneration,
  formatBinaryKey,
  isGeneration,
  isSha256,
  parseBinaryKey,
} from "./binary-key.ts";
export {
  type BinaryPage,
  type BinaryStore,
  type ByteRange,
  LIST_PAGE_MAX,
  type StoredBinary,
  type StoreIdentity,
} from "./binary-store.ts";
export { claimStore, type StoreClaim } from "./claim-store.ts";
export { ARTIFACT_PREFIX, createStore, type StoreSettings } from "./create-store.ts";
export type { S3Settings } from "./s3/s3-settings.ts";
export { createS3Store, type S3Store } from "./s3/s3-store.ts";
export type { S3Download } from "./s3/sign-download.ts";
export { createFence, type Fence, FenceRefused } from "./fence.ts";
export { FENCE_REASONS, type FenceReason, type StoredNamespace } from "./namespace-check.ts";
export { formatOwnerMark, type OwnerMark, parseOwnerMark } from "./owner-mark.ts";
export { createSpool, type Spool, SPOOL_MEMORY_BYTES } from "./spool.ts";
export type { SpoolBody } from "./spool-body.ts";
export { HEAD_BYTES, type SpooledBody } from "./spooled-body.ts";
export { StoreUnavailable } from "./store-unavailable.ts";
export { createLocalStore } from "./local-store.ts";
export {
  deriveDownloadKey,
  type DownloadClaims,
  signDownloadUrl,
  type VerifiedDownload,
  verifyDownloadUrl,
} from "./download-url.ts";
