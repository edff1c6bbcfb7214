/**
 * Vetted addresses in the order in which they are tried: the families in turn, IPv6 first, as systems prefer it, and each
 * family in the order of its answers (RFC 8305 section 4).
 */
export function orderAddresses(addresses: readonly string[]): readonly string[] {
  if (addresses.length < 2) return addresses;
  const ipv6 = addresses.filter((address) => address.includes(":"));
  const ipv4 = addresses.filter((address) => !address.includes(":"));
  const rounds = Math.max(ipv6.length, ipv4.length);
  return Array.from({ length: rounds }, (_, round) => [ipv6[round], ipv4[round]])
    .flat()
    .filter((address) => address !== undefined);
}
