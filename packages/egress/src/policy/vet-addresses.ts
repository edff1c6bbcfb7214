import { type AddressPolicy, classifyParsedAddress } from "./classify-address.ts";
import { isInCidr, parseCidr } from "./cidr.ts";
import { type Address, parseAddress } from "./parse-address.ts";
import { isMetadataAddress, isWithinReach, type Reach } from "./reach.ts";

/** The most addresses of one name that are ever dialled. All answers are vetted all the same. */
export const VETTED_ADDRESSES_MAX = 8;

/** `address`: at least one answer may not be dialled. `no_address`: there was no answer. */
export type AddressReason = "address" | "no_address";

/** `reach` is the vetted URL's; absent means PUBLIC. */
export type VetAddressesOptions = AddressPolicy & { readonly reach?: Reach };

/**
 * `block` is for logs only. `hint` FAKE_IP_RESOLVER: every answer lay in 198.18.0.0/15, as the resolver of a proxy tool
 * gives for all names; an operator who runs one sets `allowResolvedCidrs`.
 */
export type VetAddressesResult =
  | { readonly ok: true; readonly addresses: readonly string[] }
  | {
      readonly ok: false;
      readonly reason: AddressReason;
      readonly block: string;
      readonly hint: "FAKE_IP_RESOLVER" | null;
    };

const FAKE_IPS = parseCidr("198.18.0.0/15");

/**
 * Vets every answer for a name and gives at most 8 to dial, without repeats: the families in turn, IPv6 first, as systems
 * prefer it, each in the order of its answers (RFC 8305 section 4). One answer that may not be dialled refuses the name: a
 * mixed set is how rebinding and split answers look.
 */
export function vetAddresses(answers: readonly string[], options: VetAddressesOptions = {}): VetAddressesResult {
  if (answers.length === 0) return { ok: false, reason: "no_address", block: "none", hint: null };
  for (const answer of answers) {
    const block = refusedBlock(answer, options, "ANSWER");
    if (block !== null) return { ok: false, reason: "address", block, hint: fakeIpHint(answers) };
  }
  const distinct = [...new Set(answers)];
  const ipv4 = distinct.filter((answer) => !answer.includes(":"));
  const ipv6 = distinct.filter((answer) => answer.includes(":"));
  return { ok: true, addresses: takeInTurn(ipv6, ipv4).slice(0, VETTED_ADDRESSES_MAX) };
}

/**
 * The block that forbids dialling an address, or `null` when it may be dialled. `allowResolvedCidrs` counts for answers
 * only. Beyond PUBLIC, `denyCidrs` do not count: an exact listing is the more specific word of the same operator.
 */
export function refusedBlock(ip: string, options: VetAddressesOptions, source: "LITERAL" | "ANSWER"): string | null {
  const address = parseAddress(ip);
  if (address === null) return "malformed";
  const { reach = "PUBLIC", denyCidrs: _, ...beyondPublic } = options;
  if (isWithinReach(address, reach)) return null;
  const verdict = classifyParsedAddress(address, reach === "PUBLIC" ? options : beyondPublic);
  if (verdict.public || (source === "ANSWER" && isAllowedAnswer(address, options))) return null;
  return verdict.block;
}

function isAllowedAnswer(address: Address, { allowResolvedCidrs = [], denyCidrs = [] }: AddressPolicy): boolean {
  if (isMetadataAddress(address) || denyCidrs.some((cidr) => isInCidr(address, cidr))) return false;
  return allowResolvedCidrs.some((cidr) => isInCidr(address, cidr));
}

function fakeIpHint(answers: readonly string[]): "FAKE_IP_RESOLVER" | null {
  const allFake = answers.every((answer) => {
    const address = parseAddress(answer);
    return address !== null && FAKE_IPS !== null && isInCidr(address, FAKE_IPS);
  });
  return allFake ? "FAKE_IP_RESOLVER" : null;
}

function takeInTurn(first: readonly string[], second: readonly string[]): string[] {
  const rounds = Math.max(first.length, second.length);
  return Array.from({ length: rounds }, (_, round) => [first[round], second[round]])
    .flat()
    .filter((address) => address !== undefined);
}
