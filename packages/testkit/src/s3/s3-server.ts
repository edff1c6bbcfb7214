import type { AccessLogFormat } from "./access-log.ts";
import type { S3Exchange } from "./exchange-log.ts";
import type { S3Fault, S3FaultMatcher, SetFault } from "./faults.ts";
import type { Damage } from "./piece-keeper.ts";
import type { S3Dialect } from "./s3-answer.ts";

/** What a server is like. Everything has a default. */
export type S3Options = {
  /** "keble-artifacts". */
  readonly bucket?: string;
  readonly accessKeyId?: string;
  readonly secretAccessKey?: string;
  /** The region that signatures must name: "us-east-1". */
  readonly region?: string;
  /**
   * "S3". As "OSS" it refuses the bucket in the path and aws-chunked bodies, ignores `If-None-Match`, heeds
   * `x-oss-forbid-overwrite`, and writes ETags in upper case and errors with an EC.
   */
  readonly dialect?: S3Dialect;
  /** Absent: any free one. */
  readonly port?: number;
  /** Keeps bodies in files of this existing directory instead of in memory. Removing them is the caller's. */
  readonly directory?: string;
  /** The least size of a part that is not the last: 5 MiB. */
  readonly partBytesMin?: number;
  /** PRECONDITION (the default): of two racing conditional puts the later gets 412. CONFLICT: it gets 409 at once. */
  readonly racing?: "PRECONDITION" | "CONFLICT";
  /** The server's clock, in milliseconds since the epoch. Expiry, skew and times of storing go by it. */
  readonly now?: () => number;
};

/** One object as a test sees it. */
export type S3ObjectView = {
  readonly sizeBytes: number;
  /** Hex, of the bytes as they came in: damage does not change it. */
  readonly sha256: string;
  readonly metadata: Readonly<Record<string, string>>;
  /** Undefined: none was given. */
  readonly contentType: string | undefined;
  readonly storedAt: Date;
};

/** One open multipart upload as a test sees it. */
export type S3UploadView = {
  readonly uploadId: string;
  readonly key: string;
  readonly initiatedAt: Date;
  /** Sizes by part number. */
  readonly parts: ReadonlyMap<number, number>;
};

/** A server that speaks S3's protocol for one bucket, one key and one secret. Disposing it cuts what is open. */
export type S3Server = AsyncDisposable & {
  /** `http://127.0.0.1:port`, for clients that put the bucket into the path. */
  readonly url: string;
  /**
   * `http://localhost:port`, for clients that put the bucket into the host: they connect to `<bucket>.localhost`, which
   * no resolver here knows. Give the client an agent that looks names up with `lookUpLocally`.
   */
  readonly virtualHostUrl: string;
  readonly port: number;
  readonly bucket: string;
  readonly region: string;
  readonly accessKeyId: string;
  readonly secretAccessKey: string;

  /** Every object, by key, in key order. */
  objects(): ReadonlyMap<string, S3ObjectView>;
  /** An object's bytes now; throws when there is none. For small ones. */
  bytes(key: string): Promise<Buffer>;
  /** Puts an object there without a request. */
  plant(key: string, bytes: Buffer | string, metadata?: Readonly<Record<string, string>>): Promise<void>;
  /** Removes an object behind everybody's back; false: there is none. */
  remove(key: string): boolean;
  /** Changes an object's last byte (FLIP, the default) or takes it away (TRUNCATE). Throws when there is none. */
  damage(key: string, how?: Damage): Promise<void>;
  /** Says that an object was stored then. Throws when there is none. */
  setStoredAt(key: string, storedAt: Date): void;
  /** Every upload that is neither completed nor aborted, in key order. */
  uploads(): readonly S3UploadView[];
  /** Says that an upload began then. Throws when there is none. */
  setInitiatedAt(uploadId: string, initiatedAt: Date): void;

  /** The last 10,000 requests in the order of arrival, also refused and cut ones. */
  requests(): readonly S3Exchange[];
  /** The first `count` (1) ended requests that match, past ones included; fails after `timeoutMs` (15,000). */
  waitFor(match: (exchange: S3Exchange) => boolean, count?: number, timeoutMs?: number): Promise<readonly S3Exchange[]>;
  /** The first request that matches, ended or not: asked when one arrives, and as its body comes in. Fails likewise. */
  waitForArrival(match: (exchange: S3Exchange) => boolean, timeoutMs?: number): Promise<S3Exchange>;
  /** The ended ones of the last 10,000 requests as lines of such a log. */
  accessLog(format: AccessLogFormat): readonly string[];

  /** The next requests that match meet this fault. Of several faults the one set first is met. */
  fail(matcher: S3FaultMatcher, fault: S3Fault): SetFault;
  /** Goes down: cuts every connection and refuses new ones. Objects and uploads stay. Does nothing when down. */
  stop(): Promise<void>;
  /** Comes back on the same port. Does nothing when up. */
  start(): Promise<void>;
  /** Open connections now. */
  connections(): number;
};
