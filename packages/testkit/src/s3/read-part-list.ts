import { accept, refuse, type S3Result } from "./s3-refusal.ts";

/** One part as the completing request lists it. `etag` is without quotes, lower case. */
export type ListedPart = { readonly partNumber: number; readonly etag: string };

/** S3's own limit of an upload. */
export const PART_NUMBER_MAX = 10_000;

/** Reads the document that completes an upload: at least one part, in ascending order. */
export function readPartList(text: string): S3Result<readonly ListedPart[]> {
  const [, inner] = /<CompleteMultipartUpload[^>]*>([\s\S]*)<\/CompleteMultipartUpload>\s*$/.exec(text) ?? [];
  if (inner === undefined) return refuse("MalformedXML");
  const parts: ListedPart[] = [];
  for (const [, part = ""] of inner.matchAll(/<Part>([\s\S]*?)<\/Part>/g)) {
    const [, partNumber] = /<PartNumber>\s*(\d{1,5})\s*<\/PartNumber>/.exec(part) ?? [];
    const [, etag] = /<ETag>\s*(?:"|&quot;|&#34;)?([0-9A-Fa-f-]+)(?:"|&quot;|&#34;)?\s*<\/ETag>/.exec(part) ?? [];
    if (partNumber === undefined || etag === undefined) return refuse("MalformedXML");
    parts.push({ partNumber: Number(partNumber), etag: etag.toLowerCase() });
  }
  if (parts.length === 0 || parts.length > PART_NUMBER_MAX) return refuse("MalformedXML");
  const ascending = parts.every(({ partNumber }, i) => i === 0 || partNumber > (parts[i - 1]?.partNumber ?? 0));
  return ascending ? accept(parts) : refuse("InvalidPartOrder");
}
