/** `%XX`, or one character that is neither unreserved nor of a kind that stands for itself in a path or a query. */
const TO_REWRITE = /%[0-9a-f]{2}|[^A-Za-z0-9\-._~:/?#@!$&'()*+,;=%]/giu;
const UNRESERVED = /^[A-Za-z0-9\-._~]$/;

/**
 * A pattern or a request target in the one spelling in which the two are compared: unreserved characters plain, all
 * others percent-encoded in upper case (RFC 9309 section 2.2.2).
 */
export function canonicalisePattern(text: string): string {
  return text.replace(TO_REWRITE, (found) => {
    if (found.length === 3 && found.startsWith("%")) {
      const character = String.fromCharCode(Number.parseInt(found.slice(1), 16));
      return UNRESERVED.test(character) ? character : found.toUpperCase();
    }
    return [...Buffer.from(found, "utf8")]
      .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
      .join("");
  });
}

/**
 * Whether a canonical pattern matches a canonical target from its start. `*` stands for any characters, `$` at the end
 * for the end of the target. Each part is looked for once, leftmost, so the work grows with the two lengths only: a site
 * writes both the rules and, by redirects, the targets.
 */
export function matchesPattern(pattern: string, path: string): boolean {
  const isAnchored = pattern.endsWith("$");
  const end = isAnchored ? pattern.length - 1 : pattern.length;
  const firstStar = starFrom(pattern, 0, end);
  if (!path.startsWith(pattern.slice(0, firstStar))) return false;
  if (firstStar === end) return !isAnchored || path.length === end;
  let position = firstStar;
  for (let start = firstStar + 1; ;) {
    const star = starFrom(pattern, start, end);
    const part = pattern.slice(start, star);
    if (star === end) {
      return isAnchored ? path.length - part.length >= position && path.endsWith(part) : path.includes(part, position);
    }
    const found = path.indexOf(part, position);
    if (found === -1) return false;
    position = found + part.length;
    start = star + 1;
  }
}

function starFrom(pattern: string, start: number, end: number): number {
  const star = pattern.indexOf("*", start);
  return star === -1 ? end : star;
}
