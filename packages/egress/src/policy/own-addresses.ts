import type { NetworkInterfaceInfo } from "node:os";
import { type Cidr, parseCidr } from "./cidr.ts";

/**
 * The addresses of this machine (`os.networkInterfaces()`), for `denyCidrs`: a public one would let a job reach our own
 * ports from inside.
 */
export function ownAddresses(
  interfaces: Readonly<Record<string, readonly NetworkInterfaceInfo[] | undefined>>,
): Cidr[] {
  return Object.values(interfaces)
    .flatMap((infos) => infos ?? [])
    .map(({ address }) => parseCidr(address))
    .filter((cidr) => cidr !== null);
}
