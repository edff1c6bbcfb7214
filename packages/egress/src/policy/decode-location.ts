/**
 * A header value (one character per byte) as text: UTF-8 where it is UTF-8, every other byte percent-encoded by itself,
 * as browsers do. `null` when a character is no byte at all.
 */
export function decodeLocation(latin1: string): string | null {
  // oxlint-disable-next-line no-control-regex -- the range is that of a byte
  if (!/^[\u0000-\u00ff]*$/.test(latin1)) return null;
  const bytes = Buffer.from(latin1, "latin1");
  let text = "";
  let index = 0;
  while (index < bytes.length) {
    const length = sequenceLength(bytes, index);
    text +=
      length === 0
        ? `%${(bytes[index] ?? 0).toString(16).toUpperCase().padStart(2, "0")}`
        : bytes.toString("utf8", index, index + length);
    index += Math.max(length, 1);
  }
  return text;
}

/** Bytes of the well-formed UTF-8 sequence at `index` (Unicode table 3-7), 0 when there is none. */
function sequenceLength(bytes: Buffer, index: number): number {
  const lead = bytes[index] ?? 0;
  if (lead < 0x80) return 1;
  const second = bytes[index + 1] ?? 0;
  const length = lead < 0xc2 ? 0 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : lead < 0xf5 ? 4 : 0;
  if (length === 0) return 0;
  const lowest = lead === 0xe0 ? 0xa0 : lead === 0xf0 ? 0x90 : 0x80;
  const highest = lead === 0xed ? 0x9f : lead === 0xf4 ? 0x8f : 0xbf;
  if (second < lowest || second > highest) return 0;
  for (let offset = 2; offset < length; offset += 1) {
    const next = bytes[index + offset] ?? 0;
    if (next < 0x80 || next > 0xbf) return 0;
  }
  return length;
}
