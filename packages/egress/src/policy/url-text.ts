/** The longest URL, in UTF-16 units, as written and as serialised. */
export const URL_CHARS_MAX = 8192;

/** Why the text of a URL is refused, whatever it says. */
export type TextReason = "empty" | "too_long" | "control_char" | "bidi_control" | "lone_surrogate";

/** Why the part before the path is refused, from the text alone. */
export type AuthorityReason = "no_scheme" | "scheme" | "authority_form" | "backslash" | "credentials" | "host_percent";

// oxlint-disable-next-line no-control-regex -- control characters are what it looks for
const CONTROL = /[\u0000-\u001f\u007f]/;
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const LONE_SURROGATE = /\p{Surrogate}/u;
const SCHEME = /^(?<scheme>[a-z][a-z0-9+.-]*):/i;
const AUTHORITY = /^\/\/(?<authority>[^/\\?#][^/?#]*)/;

/** Text without outer U+0020, and only those: other white space is a control character and refused. */
export function trimSpaces(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && text[start] === " ") start += 1;
  while (end > start && text[end - 1] === " ") end -= 1;
  return text.slice(start, end);
}

/** The rules about characters. URL parsers silently delete or rewrite what these look for, so they come first. */
export function vetUrlText(text: string): TextReason | null {
  if (text === "") return "empty";
  if (text.length > URL_CHARS_MAX) return "too_long";
  if (CONTROL.test(text)) return "control_char";
  if (BIDI.test(text)) return "bidi_control";
  return LONE_SURROGATE.test(text) ? "lone_surrogate" : null;
}

/** Whether the text begins with a scheme, as WHATWG reads one. */
export function hasScheme(text: string): boolean {
  return SCHEME.test(text);
}

/** Whether a backslash stands before the query: WHATWG reads it as a slash there, others do not. */
export function hasBackslashInPath(text: string): boolean {
  return /^[^?#]*\\/.test(text);
}

/** Vets scheme and authority of an absolute URL and gives the host as it is written, without port. */
export function readAuthority(
  text: string,
): { readonly ok: true; readonly rawHost: string } | { readonly ok: false; readonly reason: AuthorityReason } {
  const scheme = SCHEME.exec(text)?.groups?.["scheme"]?.toLowerCase();
  if (scheme === undefined) return { ok: false, reason: "no_scheme" };
  if (scheme !== "http" && scheme !== "https") return { ok: false, reason: "scheme" };
  const rest = text.slice(scheme.length + 1);
  const authority = AUTHORITY.exec(rest)?.groups?.["authority"];
  if (authority === undefined) return { ok: false, reason: "authority_form" };
  if (hasBackslashInPath(rest)) return { ok: false, reason: "backslash" };
  if (authority.includes("@")) return { ok: false, reason: "credentials" };
  if (authority.includes("%")) return { ok: false, reason: "host_percent" };
  return { ok: true, rawHost: authority.replace(/:[0-9]*$/, "") };
}
