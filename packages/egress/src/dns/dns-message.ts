import type { AddressRecord } from "./merge-answers.ts";

/** The two types that lead to addresses (RFC 1035, RFC 3596). */
export type AddressType = "A" | "AAAA";

const TYPES = { A: 1, AAAA: 28 } as const;
const TYPE_CNAME = 5;
const CLASS_IN = 1;
const HEADER_BYTES = 12;
const NAME_BYTES_MAX = 255;
const LABEL_BYTES_MAX = 63;

/** RCODEs in c-ares' words; others are a server's failure. */
const RCODES: Readonly<Record<number, string>> = { 1: "EFORMERR", 2: "ESERVFAIL", 3: "ENOTFOUND", 5: "EREFUSED" };

/** `nativeCode`: c-ares' word for the answer's code; EBADRESP: it was no answer to this question. */
export type DnsReply =
  | { readonly ok: true; readonly records: readonly AddressRecord[] }
  | { readonly ok: false; readonly nativeCode: string };

/**
 * A question in wire format, with id 0 so that equal questions are equal bytes (RFC 8484 section 4.1). Null for a name that
 * has none: a label of more than 63 bytes, more than 255 in all.
 */
export function writeQuestion(name: string, type: AddressType): Buffer | null {
  const labels = name.split(".").map((label) => Buffer.from(label, "latin1"));
  if (labels.some((label) => label.length === 0 || label.length > LABEL_BYTES_MAX)) return null;
  const encoded = Buffer.concat([...labels.flatMap((label) => [Buffer.from([label.length]), label]), Buffer.from([0])]);
  if (encoded.length > NAME_BYTES_MAX) return null;
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt16BE(0x0100, 2); // recursion desired
  header.writeUInt16BE(1, 4); // one question
  const tail = Buffer.alloc(4);
  tail.writeUInt16BE(TYPES[type], 0);
  tail.writeUInt16BE(CLASS_IN, 2);
  return Buffer.concat([header, encoded, tail]);
}

/**
 * Reads the reply to `question`: every address of the type that was asked for, each with the smallest TTL of the chain of
 * aliases. A reply that does not repeat the question, was cut, or breaks the format anywhere is none. Never throws.
 */
export function readReply(reply: Buffer, question: Buffer): DnsReply {
  const malformed = { ok: false, nativeCode: "EBADRESP" } as const;
  if (reply.length < question.length) return malformed;
  const flags = reply.readUInt16BE(2);
  const isReply = (flags & 0x8000) !== 0 && (flags & 0x0200) === 0;
  // Names compare without case; a resolver may write them as it likes.
  const [asked, repeated] = [question, reply].map((bytes) =>
    bytes.subarray(HEADER_BYTES, question.length).toString("latin1").toLowerCase(),
  );
  if (!isReply || reply.readUInt16BE(4) !== 1 || asked !== repeated) return malformed;
  const rcode = flags & 0x000f;
  if (rcode !== 0) return { ok: false, nativeCode: RCODES[rcode] ?? "ESERVFAIL" };
  const type = question.readUInt16BE(question.length - 4);
  return readRecords(reply, question.length, type) ?? malformed;
}

function readRecords(reply: Buffer, start: number, type: number): DnsReply | null {
  const addresses: AddressRecord[] = [];
  let aliasTtl = Infinity;
  let at = start;
  for (let left = reply.readUInt16BE(6); left > 0; left -= 1) {
    const head = skipName(reply, at);
    if (head === null || head + 10 > reply.length) return null;
    const dataAt = head + 10;
    const dataBytes = reply.readUInt16BE(head + 8);
    at = dataAt + dataBytes;
    if (at > reply.length) return null;
    if (reply.readUInt16BE(head + 2) !== CLASS_IN) continue;
    const recordType = reply.readUInt16BE(head);
    // RFC 2181 section 8: with the highest bit set it counts as 0.
    const seconds = reply.readUInt32BE(head + 4);
    const ttl = seconds > 0x7fff_ffff ? 0 : seconds;
    if (recordType === TYPE_CNAME) aliasTtl = Math.min(aliasTtl, ttl);
    if (recordType !== type) continue;
    const address = toAddress(reply.subarray(dataAt, at), type);
    if (address === null) return null;
    addresses.push({ address, ttl });
  }
  return { ok: true, records: addresses.map(({ address, ttl }) => ({ address, ttl: Math.min(ttl, aliasTtl) })) };
}

/** Where a name ends; a pointer ends it too, wherever it leads. Null when it runs out of the message. */
function skipName(reply: Buffer, start: number): number | null {
  let at = start;
  for (;;) {
    const length = reply[at];
    if (length === undefined) return null;
    if (length === 0) return at + 1;
    if ((length & 0xc0) === 0xc0) return at + 2;
    if (length > LABEL_BYTES_MAX) return null;
    at += 1 + length;
  }
}

function toAddress(data: Buffer, type: number): string | null {
  if (type === TYPES.A) return data.length === 4 ? [...data].join(".") : null;
  if (data.length !== 16) return null;
  const groups = Array.from({ length: 8 }, (_, index) => data.readUInt16BE(index * 2).toString(16));
  return new URL(`http://[${groups.join(":")}]/`).hostname.slice(1, -1);
}
