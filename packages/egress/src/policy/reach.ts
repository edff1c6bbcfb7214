import { type Cidr, isInCidr, parseCidr } from "./cidr.ts";
import type { Address } from "./parse-address.ts";

/**
 * How far a vetted URL may lead.
 * - `PUBLIC`: public addresses only; the rule for everything that nobody listed.
 * - `PRIVATE`: also RFC 1918, shared and unique local addresses, for a receiver that the operator listed.
 * - `LOCAL`: any address but a metadata service's, for what is listed in development and test.
 */
export type Reach = "PUBLIC" | "PRIVATE" | "LOCAL";

function cidrs(...texts: string[]): readonly Cidr[] {
  return texts.map((text) => {
    const cidr = parseCidr(text);
    if (cidr === null) throw new Error(`bad block ${text}`);
    return cidr;
  });
}

const PRIVATE = cidrs("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7");

/** AWS, ECS, EKS, GCP, Azure, Oracle, Tencent and Scaleway; WireServer, Alibaba, Oracle classic; the same over IPv6. */
const METADATA = cidrs(
  "169.254.0.0/16",
  "168.63.129.16",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::/32",
  "fd20:ce::254",
  "fd00:42::42",
  "fe80::/10",
);

const LOW_32_BITS = 0xffff_ffffn;
const IPV4_IN_LOW_BITS = cidrs("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96");
const [SIX_TO_FOUR] = cidrs("2002::/16");

/** Whether an address is, or carries inside an IPv6 form, a cloud metadata service. Listing one changes nothing. */
export function isMetadataAddress(address: Address): boolean {
  if (METADATA.some((cidr) => isInCidr(address, cidr))) return true;
  if (IPV4_IN_LOW_BITS.some((cidr) => isInCidr(address, cidr))) {
    return isMetadataAddress({ family: 4, value: address.value & LOW_32_BITS });
  }
  if (SIX_TO_FOUR !== undefined && isInCidr(address, SIX_TO_FOUR)) {
    return isMetadataAddress({ family: 4, value: (address.value >> 80n) & LOW_32_BITS });
  }
  return false;
}

/** Whether `reach` by itself, without the block table, lets an address be dialled. */
export function isWithinReach(address: Address, reach: Reach): boolean {
  if (reach === "PUBLIC" || isMetadataAddress(address)) return false;
  return reach === "LOCAL" || PRIVATE.some((cidr) => isInCidr(address, cidr));
}
