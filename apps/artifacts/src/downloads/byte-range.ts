/** Bytes `start` to `end`, both included. */
export type ByteRange = { readonly start: number; readonly end: number };

/**
 * What a `Range` header asks of `sizeBytes` bytes (RFC 9110, 14.2): one range; WHOLE when there is no header, it is malformed,
 * in another unit or asks for several ranges (a server may answer any of them in full); UNSATISFIABLE when it asks for
 * nothing that is there.
 */
export function parseByteRange(header: string | undefined, sizeBytes: number): ByteRange | "WHOLE" | "UNSATISFIABLE" {
  const match = /^bytes=[ \t]*([0-9]{0,15})-([0-9]{0,15})[ \t]*$/i.exec(header ?? "");
  if (match === null) return "WHOLE";
  const [, first = "", last = ""] = match;
  if (first === "" && last === "") return "WHOLE";
  if (first === "") {
    const count = Math.min(Number(last), sizeBytes);
    return count === 0 ? "UNSATISFIABLE" : { start: sizeBytes - count, end: sizeBytes - 1 };
  }
  const start = Number(first);
  if (last !== "" && Number(last) < start) return "WHOLE";
  if (start >= sizeBytes) return "UNSATISFIABLE";
  return { start, end: last === "" ? sizeBytes - 1 : Math.min(Number(last), sizeBytes - 1) };
}

/** True when an `If-Match` or `If-None-Match` header names the tag, or any. */
export function matchesTag(header: string, tag: string, comparison: "STRONG" | "WEAK"): boolean {
  if (header.trim() === "*") return true;
  const tags = header.split(",").map((item) => item.trim());
  return tags.some((item) => (comparison === "WEAK" ? item.replace(/^W\//, "") : item) === tag);
}
