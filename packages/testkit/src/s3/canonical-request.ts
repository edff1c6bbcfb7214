import { createHash, createHmac } from "node:crypto";

/** What a signature version 4 covers. */
export type SignedRequest = {
  readonly method: string;
  /** The path as sent, still encoded. Its segments are decoded and encoded again, once, as S3 does. */
  readonly path: string;
  /** All parameters but the signature itself, decoded, in any order. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** The signed headers: lower-case names, values as sent. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** Hex SHA-256 of the body, or the word that stands for it. */
  readonly payloadHash: string;
};

/** Where and when a key signs. `date` is `YYYYMMDDTHHMMSSZ`. */
export type SigningScope = { readonly date: string; readonly region: string; readonly service: string };

/** The canonical form of a request: the text whose hash is signed. Throws URIError on a path that can't be decoded. */
export function canonicalRequest({ method, path, query, headers, payloadHash }: SignedRequest): string {
  const parameters = query
    .map(([name, value]) => [encodeForSignature(name), encodeForSignature(value)] as const)
    .toSorted(([name, value], [otherName, otherValue]) => compare(name, otherName) || compare(value, otherValue));
  const fields = headers.toSorted(([name], [other]) => compare(name, other));
  return [
    method,
    path.split("/").map(decodeURIComponent).map(encodeForSignature).join("/"),
    parameters.map(([name, value]) => `${name}=${value}`).join("&"),
    ...fields.map(([name, value]) => `${name}:${value.trim().replaceAll(/\s+/g, " ")}`),
    "",
    fields.map(([name]) => name).join(";"),
    payloadHash,
  ].join("\n");
}

/** The text that is signed: algorithm, time, scope and the hash of the canonical request. */
export function stringToSign(canonical: string, { date, region, service }: SigningScope): string {
  const scope = `${date.slice(0, 8)}/${region}/${service}/aws4_request`;
  return ["AWS4-HMAC-SHA256", date, scope, sha256Hex(canonical)].join("\n");
}

/** The signature, in hex, of a text by a secret within its scope. */
export function signText(text: string, secret: string, { date, region, service }: SigningScope): string {
  const key = [date.slice(0, 8), region, service, "aws4_request"].reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`));
  return hmac(key, text).toString("hex");
}

/** Percent-encodes every byte that is not an unreserved character of RFC 3986. */
export function encodeForSignature(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function hmac(key: Buffer, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

function sha256Hex(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
