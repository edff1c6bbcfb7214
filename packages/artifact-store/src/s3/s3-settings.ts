import type { LookupFunction } from "node:net";

/** Where an S3-compatible service keeps objects, and by which key. The endpoint has no path. */
export type S3Settings = {
  readonly endpoint: string;
  readonly bucket: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly prefix: string;
  readonly region: string;
  /** OSS: its own header for "do not overwrite", and always the bucket in the host name. */
  readonly dialect: "S3" | "OSS";
  readonly addressing: "PATH" | "VIRTUAL_HOST";
};

/** Sizes and times that tests make small, and the resolver they replace. */
export type S3Tuning = {
  /** Null: the system's. */
  readonly lookup: LookupFunction | null;
  /** A body up to this many bytes goes in one request; a longer one in parts. */
  readonly singlePutBytesMax: number;
  /** The size of a part; larger when a body would have more than 10,000 of them. */
  readonly partBytesMin: number;
  readonly connectTimeoutMs: number;
  /** How long a connection may be silent. */
  readonly idleTimeoutMs: number;
  /** From the first byte of a request to the head of its answer. */
  readonly requestTimeoutMs: number;
};

/**
 * 16 MiB in 180 s is 0.75 Mbit/s: slower is as good as down. Parts of 8 MiB are above S3's least (5 MiB) and keep a
 * 100 MiB body at 13 of them.
 */
export const S3_TUNING: S3Tuning = {
  lookup: null,
  singlePutBytesMax: 16 * 1024 * 1024,
  partBytesMin: 8 * 1024 * 1024,
  connectTimeoutMs: 10_000,
  idleTimeoutMs: 30_000,
  requestTimeoutMs: 180_000,
};
