import { type BinaryKey, formatBinaryKey, parseBinaryKey } from "../binary-key.ts";
import { addHeader, type Command, type S3Client } from "./s3-client.ts";
import type { S3Settings, S3Tuning } from "./s3-settings.ts";

/** What the calls of one store share. */
export type S3Context = {
  readonly settings: S3Settings;
  readonly tuning: S3Tuning;
  /** The open client; throws (a fault) before `start`. */
  client(): S3Client;
};

/** The object's name in the bucket. Throws on what is no key. */
export function toObjectName(settings: Pick<S3Settings, "prefix">, key: BinaryKey): string {
  return `${settings.prefix}/${formatBinaryKey(key)}`;
}

/** The key of an object's name in the bucket, or null for a name that is none of ours. */
export function parseObjectName({ prefix }: Pick<S3Settings, "prefix">, name: string): BinaryKey | null {
  return name.startsWith(`${prefix}/`) ? parseBinaryKey(name.slice(prefix.length + 1)) : null;
}

/** "Do not overwrite", in the words of the service. One that knows neither header replaces the object. */
export function forbidOverwrite(settings: Pick<S3Settings, "dialect">, command: Command): void {
  if (settings.dialect === "OSS") addHeader(command, "x-oss-forbid-overwrite", "true");
  else addHeader(command, "if-none-match", "*");
}

/**
 * What a service answers when it did not overwrite: S3's 412, OSS's 409. And what it answers to the end of an upload that it
 * has ended already: the first answer was lost. Whether something is there is asked in each case.
 */
export const THERE_ALREADY: ReadonlySet<string> = new Set([
  "PreconditionFailed",
  "HTTP_412",
  "FileAlreadyExists",
  "NoSuchUpload",
]);
/** What S3 answers when two conditional writes of one name meet: whichever is sent again gets a real answer. */
export const MET_ANOTHER_WRITE = "ConditionalRequestConflict";
