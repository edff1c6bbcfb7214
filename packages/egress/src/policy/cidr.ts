import { type Address, parseAddress } from "./parse-address.ts";

/** A block of addresses of one family. `base` has its host bits cleared. */
export type Cidr = { readonly family: 4 | 6; readonly base: bigint; readonly prefixBits: number };

const PREFIX = /^(?:0|[1-9][0-9]{0,2})$/;

/** Reads "10.0.0.0/8" or a single address. `null` when it is malformed or has bits set behind the prefix. */
export function parseCidr(text: string): Cidr | null {
  const slash = text.indexOf("/");
  const address = parseAddress(slash === -1 ? text : text.slice(0, slash));
  if (address === null) return null;
  const widthBits = address.family === 4 ? 32 : 128;
  const prefix = slash === -1 ? String(widthBits) : text.slice(slash + 1);
  if (!PREFIX.test(prefix) || Number(prefix) > widthBits) return null;
  const prefixBits = Number(prefix);
  const hostBits = BigInt(widthBits - prefixBits);
  // Host bits mean that the operator had another block in mind than the one we would apply.
  if ((address.value >> hostBits) << hostBits !== address.value) return null;
  return { family: address.family, base: address.value, prefixBits };
}

/** Whether the address lies in the block. Families never match each other: `::ffff:0:0/96` holds no IPv4. */
export function isInCidr(address: Address, cidr: Cidr): boolean {
  if (address.family !== cidr.family) return false;
  const hostBits = BigInt((cidr.family === 4 ? 32 : 128) - cidr.prefixBits);
  return address.value >> hostBits === cidr.base >> hostBits;
}
