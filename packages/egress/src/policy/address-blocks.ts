import { type Cidr, parseCidr } from "./cidr.ts";

/** A block of the table: its text, and its text with a name for logs. */
export type AddressBlock = { readonly cidr: Cidr; readonly label: string };

function block(text: string, name: string): AddressBlock {
  const cidr = parseCidr(text);
  if (cidr === null) throw new Error(`bad block ${text}`);
  return { cidr, label: `${text} (${name})` };
}

/**
 * IPv4 that is never dialled. From the IANA special-purpose registry (state 2025-10-09), the multicast registry, and one
 * vendor address. Blocks that IANA calls reachable (AS112, AMT, anycast) host no web sites and are refused as well.
 */
export const IPV4_BLOCKS: readonly AddressBlock[] = [
  block("0.0.0.0/8", "this-network"), // RFC 791, 1122; Linux connects 0.0.0.0 to loopback
  block("10.0.0.0/8", "private"), // RFC 1918
  block("100.64.0.0/10", "cgnat"), // RFC 6598; Tailscale; Alibaba's metadata service
  block("127.0.0.0/8", "loopback"), // RFC 1122
  block("168.63.129.16/32", "azure-wireserver"), // vendor; looks public
  block("169.254.0.0/16", "link-local"), // RFC 3927; metadata services
  block("172.16.0.0/12", "private"), // RFC 1918
  block("192.0.0.0/24", "ietf-protocol"), // RFC 6890, 7335, 7600, 7723, 8155, 8880
  block("192.0.2.0/24", "doc-1"), // RFC 5737
  block("192.31.196.0/24", "as112"), // RFC 7535
  block("192.52.193.0/24", "amt"), // RFC 7450
  block("192.88.99.0/24", "6to4-relay"), // RFC 7526, 6751
  block("192.168.0.0/16", "private"), // RFC 1918
  block("192.175.48.0/24", "as112"), // RFC 7534
  block("198.18.0.0/15", "benchmark"), // RFC 2544; fake-IP resolvers
  block("198.51.100.0/24", "doc-2"), // RFC 5737
  block("203.0.113.0/24", "doc-3"), // RFC 5737
  block("224.0.0.0/4", "multicast"), // RFC 5771
  block("240.0.0.0/4", "reserved"), // RFC 1112, 919
];

/**
 * IPv6 that is never dialled, the narrower block first where two overlap. Only 2000::/3 is allocated for unicast, so
 * everything outside it is refused whether or not it is listed; the rows there only give a log its reason.
 */
export const IPV6_BLOCKS: readonly AddressBlock[] = [
  block("::/128", "unspecified"), // RFC 4291
  block("::1/128", "loopback"), // RFC 4291
  block("::/96", "ipv4-compatible"), // RFC 4291
  block("::ffff:0:0/96", "ipv4-mapped"), // RFC 4291; really connects to the IPv4 address
  block("::ffff:0:0:0/96", "siit"), // RFC 2765, 7915
  block("64:ff9b::/96", "nat64-wkp"), // RFC 6052
  block("64:ff9b:1::/48", "nat64-local"), // RFC 8215
  block("100::/64", "discard"), // RFC 6666
  block("100:0:0:1::/64", "dummy-prefix"), // RFC 9780
  block("2001::/32", "teredo"), // RFC 4380
  block("2001:2::/48", "benchmark"), // RFC 5180
  block("2001:10::/28", "orchid-v1"), // RFC 4843
  block("2001::/23", "ietf-protocol"), // RFC 2928; flat, so that a new /128 in it changes nothing
  block("2001:db8::/32", "documentation"), // RFC 3849
  block("2002::/16", "6to4"), // RFC 3056
  block("2620:4f:8000::/48", "as112"), // RFC 7534
  block("3fff::/20", "documentation"), // RFC 9637
  block("5f00::/16", "srv6-sid"), // RFC 9602
  block("fc00::/7", "unique-local"), // RFC 4193
  block("fe80::/10", "link-local"), // RFC 4291
  block("fec0::/10", "site-local"), // RFC 3879
  block("ff00::/8", "multicast"), // RFC 4291
];

/** The allocated part of IPv6 (RFC 4291). */
export const IPV6_UNICAST = block("2000::/3", "global-unicast-v6").cidr;
