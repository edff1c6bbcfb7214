/** An IP address as a number: 32 bits for family 4, 128 for family 6. */
export type Address = { readonly family: 4 | 6; readonly value: bigint };

const DECIMAL_OCTET = /^(?:0|[1-9][0-9]{0,2})$/;
const HEXTET = /^[0-9a-fA-F]{1,4}$/;
/** The longest IPv6 spelling there is: eight full hextets would be 39, with a dotted tail 45. */
const ADDRESS_CHARS_MAX = 45;

/**
 * Reads one strictly spelled address. `null` for everything else: short, octal and hexadecimal IPv4 forms, leading
 * zeros, brackets, zone ids, CIDR text and outer spaces. Other readers disagree about those, so none is safe to guess.
 */
export function parseAddress(text: string): Address | null {
  if (text.length > ADDRESS_CHARS_MAX) return null;
  if (text.includes(":")) {
    const value = parseIpv6(text);
    return value === null ? null : { family: 6, value };
  }
  const value = parseIpv4(text);
  return value === null ? null : { family: 4, value };
}

function parseIpv4(text: string): bigint | null {
  const octets = text.split(".");
  if (octets.length !== 4) return null;
  let value = 0;
  for (const octet of octets) {
    if (!DECIMAL_OCTET.test(octet)) return null;
    const number = Number(octet);
    if (number > 255) return null;
    value = value * 256 + number;
  }
  return BigInt(value);
}

function parseIpv6(text: string): bigint | null {
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [left = "", right] = halves;
  // A dotted IPv4 tail may only end the whole text, never the half before "::".
  const head = parseHextets(left, right === undefined ? "END" : "MIDDLE");
  const tail = right === undefined ? [] : parseHextets(right, "END");
  if (head === null || tail === null) return null;
  const missing = 8 - head.length - tail.length;
  // "::" stands for at least one group; without it all eight must be there.
  if (right === undefined ? missing !== 0 : missing < 1) return null;
  const hextets = [...head, ...Array.from<number>({ length: missing }).fill(0), ...tail];
  return hextets.reduce((sum, hextet) => (sum << 16n) | BigInt(hextet), 0n);
}

function parseHextets(text: string, position: "MIDDLE" | "END"): number[] | null {
  if (text === "") return [];
  const hextets: number[] = [];
  const groups = text.split(":");
  for (const [index, group] of groups.entries()) {
    if (position === "END" && index === groups.length - 1 && group.includes(".")) {
      const tail = parseIpv4(group);
      if (tail === null) return null;
      hextets.push(Number(tail >> 16n), Number(tail & 0xffffn));
    } else if (HEXTET.test(group)) {
      hextets.push(Number.parseInt(group, 16));
    } else {
      return null;
    }
  }
  return hextets;
}
