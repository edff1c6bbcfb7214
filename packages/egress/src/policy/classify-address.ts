import { IPV4_BLOCKS, IPV6_BLOCKS, IPV6_UNICAST } from "./address-blocks.ts";
import { type Cidr, isInCidr } from "./cidr.ts";
import { type Address, parseAddress } from "./parse-address.ts";

/**
 * What an operator may change about addresses. All default to nothing.
 * - `denyCidrs`: refused besides the table (own public addresses, provider service ranges).
 * - `nat64Prefixes`: /96 prefixes of a NAT64 in use here; the IPv4 in the low 32 bits decides. Other lengths are ignored.
 * - `allowResolvedCidrs`: accepted in DNS answers only, never as literals, and never metadata (fake-IP resolvers).
 */
export type AddressPolicy = {
  readonly denyCidrs?: readonly Cidr[];
  readonly nat64Prefixes?: readonly Cidr[];
  readonly allowResolvedCidrs?: readonly Cidr[];
};

/** `block` names the deciding row for logs; it is never shown to callers, whom it would tell about the network. */
export type AddressClass = { readonly public: boolean; readonly block: string };

/** Whether an address is public Internet space. Anything that is not strictly spelled is not. */
export function classifyAddress(ip: string, policy: AddressPolicy = {}): AddressClass {
  const address = parseAddress(ip);
  return address === null ? { public: false, block: "malformed" } : classifyParsedAddress(address, policy);
}

/** `classifyAddress` for an address that was read already. */
export function classifyParsedAddress(address: Address, policy: AddressPolicy = {}): AddressClass {
  if (policy.denyCidrs?.some((cidr) => isInCidr(address, cidr)) === true) {
    return { public: false, block: "denied by the operator" };
  }
  if (address.family === 4) {
    const row = IPV4_BLOCKS.find(({ cidr }) => isInCidr(address, cidr));
    return row === undefined ? { public: true, block: "global-unicast-v4" } : { public: false, block: row.label };
  }
  const nat64 = policy.nat64Prefixes?.some((cidr) => cidr.prefixBits === 96 && isInCidr(address, cidr)) ?? false;
  if (nat64) return classifyParsedAddress({ family: 4, value: address.value & 0xffff_ffffn }, policy);
  const row = IPV6_BLOCKS.find(({ cidr }) => isInCidr(address, cidr));
  if (row !== undefined) return { public: false, block: row.label };
  return isInCidr(address, IPV6_UNICAST)
    ? { public: true, block: "global-unicast-v6" }
    : { public: false, block: "outside-2000::/3 (unallocated-v6)" };
}

/** Whether an address may be dialled without being listed anywhere. */
export function isPublicAddress(ip: string, policy: AddressPolicy = {}): boolean {
  return classifyAddress(ip, policy).public;
}
