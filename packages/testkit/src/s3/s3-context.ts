import type { ObjectTable } from "./object-table.ts";
import type { PieceKeeper } from "./piece-keeper.ts";
import type { S3Dialect } from "./s3-answer.ts";
import type { S3Request } from "./s3-request.ts";
import type { UploadTable } from "./upload-table.ts";

/** What operations work on. */
export type S3Context = {
  readonly bucket: string;
  readonly dialect: S3Dialect;
  readonly objects: ObjectTable;
  readonly uploads: UploadTable;
  readonly keeper: PieceKeeper;
  /** The least size of a part that is not the last. */
  readonly partBytesMin: number;
  /** What a conditional put answers that meets another one of its key under way. */
  readonly racing: "PRECONDITION" | "CONFLICT";
  /** The keys of conditional puts under way; empty unless racing puts conflict. */
  readonly conditionalPuts: Set<string>;
  /** Milliseconds since the epoch. */
  nowMs(): number;
};

/** One authorized request, with its body still to come. */
export type S3Call = {
  readonly request: S3Request;
  /** As signed: a hash, or a word. */
  readonly payloadHash: string;
  /** The body's chunks; asking for it tells a waiting sender to go on. Throws when the sender hangs up. */
  body(): AsyncIterable<Buffer>;
};
