/** A host whose spelling means the same to every reader. `address` without brackets, `name` without the trailing dot. */
export type Host =
  | { readonly kind: "ADDRESS"; readonly address: string }
  | { readonly kind: "NAME"; readonly name: string };

/** Why a host's spelling is refused. */
export type HostSpellingReason = "host_noncanonical_ipv4" | "host_confusable" | "host_charset" | "host_length";

const IPV4 = /^[0-9]{1,3}(?:\.[0-9]{1,3}){3}$/;
const NON_ASCII = /[^\u0020-\u007e]/;
const LABEL = /^[a-z0-9_-]+$/;
/** RFC 1035, without the trailing dot. */
const NAME_CHARS_MAX = 253;
const LABEL_CHARS_MAX = 63;

/**
 * Compares a host as written (`raw`, no port) with what the URL parser made of it (`hostname`). Refused are IPv4 in any
 * spelling but the plain one, non-ASCII that collapsed into plain ASCII, and names with characters or lengths that DNS
 * host names do not have.
 */
export function readHost(
  raw: string,
  hostname: string,
): { readonly ok: true; readonly host: Host } | { readonly ok: false; readonly reason: HostSpellingReason } {
  if (hostname.startsWith("[")) return { ok: true, host: { kind: "ADDRESS", address: hostname.slice(1, -1) } };
  if (IPV4.test(hostname)) {
    if (raw !== hostname) return { ok: false, reason: "host_noncanonical_ipv4" };
    return { ok: true, host: { kind: "ADDRESS", address: hostname } };
  }
  const name = hostname.endsWith(".") ? hostname.slice(0, -1) : hostname;
  const labels = name.split(".");
  if (NON_ASCII.test(raw) && !labels.some((label) => label.startsWith("xn--"))) {
    return { ok: false, reason: "host_confusable" };
  }
  if (!labels.every((label) => LABEL.test(label))) return { ok: false, reason: "host_charset" };
  if (name.length > NAME_CHARS_MAX || labels.some((label) => label.length > LABEL_CHARS_MAX)) {
    return { ok: false, reason: "host_length" };
  }
  return { ok: true, host: { kind: "NAME", name } };
}
