/** Why a well-spelled name is not a public one. */
export type NameReason = "host_special_use" | "host_single_label" | "host_tld";

/**
 * Names that never lead to the public Internet, each with everything under it: RFC 6761, 6762, 7686, 8375, 9476,
 * zones that private networks use, container and cluster zones, aliases of /etc/hosts, and a metadata service.
 */
const SPECIAL_USE = [
  "localhost",
  "local",
  "localdomain",
  "internal",
  "home.arpa",
  "onion",
  "test",
  "invalid",
  "example",
  "alt",
  "lan",
  "corp",
  "home",
  "intranet",
  "private",
  "svc",
  "ip6-localhost",
  "ip6-loopback",
  "metadata.goog",
] as const;

const METADATA = ["metadata.google.internal", "metadata.goog"] as const;

const TOP_LEVEL = /^(?:[a-z]+|xn--[a-z0-9-]+)$/;

/** `null` when a name (lower case, A-labels, no trailing dot) may be resolved. Addresses are vetted besides. */
export function vetName(name: string): NameReason | null {
  if (isUnderAny(name, SPECIAL_USE)) return "host_special_use";
  const labels = name.split(".");
  if (labels.length < 2) return "host_single_label";
  return TOP_LEVEL.test(labels.at(-1) ?? "") ? null : "host_tld";
}

/** Whether a name is that of a cloud metadata service. Listing one changes nothing. */
export function isMetadataName(name: string): boolean {
  return isUnderAny(name, METADATA);
}

function isUnderAny(name: string, suffixes: readonly string[]): boolean {
  return suffixes.some((suffix) => name === suffix || name.endsWith(`.${suffix}`));
}
