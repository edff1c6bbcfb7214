import { parseBinaryKey } from "@keble-scraper/artifact-store";
import type { Reconciliation, StoreRead } from "@keble-scraper/db/commands/artifacts";
import type { LoggedRead, ParsedLine, ParseLine } from "./log-line.ts";
import { type LogTextLine, readLines } from "./read-lines.ts";

/** Where this deployment's objects are. `accessKeyId` is its own key; null: a local store, whose log has no bucket. */
export type StorePlace = {
  readonly bucket: string;
  readonly prefix: string;
  readonly accessKeyId: string;
} | null;

/** What is taken, and of what. Reads before `since`, or at or after `until`, are left out; null: no such bound. */
export type TakeOptions = {
  readonly parse: ParseLine;
  readonly place: StorePlace;
  readonly since: Date | null;
  readonly until: Date | null;
  /** Told of each line that can't be read, by place; never of its text, which may hold a signature. */
  readonly onMalformed: (place: string, reason: string) => void;
};

/** What became of a log's lines: each is counted once, but for `lines`, all of them. */
export type LogTally = {
  lines: number;
  /** Reads of our objects that are held against the audit. */
  reads: number;
  /** Reads that were in the log before. */
  doubled: number;
  /** Reads by the deployment's own key: the scrub, and the checks of puts. */
  own: number;
  /** Reads of another bucket, another prefix, or of what is no object of ours. */
  elsewhere: number;
  /** Reads outside the asked time. */
  untimely: number;
  /** Everything else that was asked of the store. */
  others: number;
  malformed: number;
  firstAt: Date | null;
  lastAt: Date | null;
};

/** A log by its name, in the order it was given. */
export type NamedLog = { readonly name: string; readonly bytes: AsyncIterable<Uint8Array> };

const BATCH = 1_000;

/** Takes the reads of our objects out of the logs and into the reconciliation, a thousand at a time. */
export async function takeLogs(
  logs: readonly NamedLog[],
  reconciliation: Pick<Reconciliation, "add">,
  options: TakeOptions,
): Promise<LogTally> {
  const tally: LogTally = {
    lines: 0,
    reads: 0,
    doubled: 0,
    own: 0,
    elsewhere: 0,
    untimely: 0,
    others: 0,
    malformed: 0,
    firstAt: null,
    lastAt: null,
  };
  let batch: StoreRead[] = [];
  async function flush(): Promise<void> {
    if (batch.length === 0) return;
    const added = await reconciliation.add(batch);
    tally.reads += added;
    tally.doubled += batch.length - added;
    batch = [];
  }
  for (const { bytes, name } of logs) {
    for await (const line of readLines(bytes)) {
      const read = takeLine(tally, `${name}:${String(line.number)}`, line, options);
      if (read !== null) batch.push(read);
      if (batch.length === BATCH) await flush();
    }
  }
  await flush();
  return tally;
}

/** Counts a line; the read in it, when there is one to hold against the audit. */
function takeLine(tally: LogTally, place: string, line: LogTextLine, options: TakeOptions): StoreRead | null {
  if (line.text?.trim() === "") return null;
  tally.lines += 1;
  const parsed = bounded(line.text === null ? TOO_LONG : options.parse(line.text));
  if (parsed.kind === "MALFORMED") {
    tally.malformed += 1;
    options.onMalformed(place, parsed.reason);
    return null;
  }
  const at = parsed.kind === "READ" ? parsed.read.at : parsed.at;
  if (at !== null) {
    if (tally.firstAt === null || at < tally.firstAt) tally.firstAt = at;
    if (tally.lastAt === null || at > tally.lastAt) tally.lastAt = at;
  }
  if (parsed.kind === "OTHER") {
    tally.others += 1;
    return null;
  }
  return takeRead(tally, place, parsed.read, options);
}

function takeRead(tally: LogTally, place: string, read: LoggedRead, options: TakeOptions): StoreRead | null {
  const object = toObject(read, options.place);
  if (object === null) {
    tally.elsewhere += 1;
    return null;
  }
  if ((options.since !== null && read.at < options.since) || (options.until !== null && read.at >= options.until)) {
    tally.untimely += 1;
    return null;
  }
  const signedBy = toSignedBy(read, options.place);
  if (signedBy === "OWN_KEY" && read.auditId === null) {
    tally.own += 1;
    return null;
  }
  const { at, auditId, requestId } = read;
  return { requestId, at, ...object, auditId, signedBy, place };
}

const TOO_LONG = { kind: "MALFORMED", reason: "too long" } as const;
/** Stores name requests in some 16 to 40 characters; an index of the database takes some 2,700 bytes. */
const REQUEST_ID_MAX = 500;

function bounded(parsed: ParsedLine): ParsedLine {
  const isLong = parsed.kind === "READ" && parsed.read.requestId.length > REQUEST_ID_MAX;
  return isLong ? { kind: "MALFORMED", reason: "a request id too long" } : parsed;
}

function toObject(read: LoggedRead, place: StorePlace): ReturnType<typeof parseBinaryKey> {
  if (place === null) return parseBinaryKey(read.key);
  if (read.bucket !== place.bucket || !read.key.startsWith(`${place.prefix}/`)) return null;
  return parseBinaryKey(read.key.slice(place.prefix.length + 1));
}

/** A header's signature is the deployment's own unless the log names another key: AWS' names none. */
function toSignedBy({ accessKeyId, signedBy }: LoggedRead, place: StorePlace): StoreRead["signedBy"] {
  if (signedBy !== "KEY") return signedBy;
  return accessKeyId === null || accessKeyId === place?.accessKeyId ? "OWN_KEY" : "OTHER_KEY";
}
