import { decodeLocation } from "./decode-location.ts";
import { hasBackslashInPath, hasScheme, trimSpaces, URL_CHARS_MAX, vetUrlText } from "./url-text.ts";
import { type UrlReason, vetUrl, type VettedUrl, type VetUrlOptions } from "./vet-url.ts";

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Whether a status may be followed. 300, 304 and 305 never are: 305 would let an origin choose our proxy. */
export function isRedirectStatus(httpStatus: number): boolean {
  return REDIRECTS.has(httpStatus);
}

/** Why a Location is no URL at all: `conflict` is two different ones, `not_bytes` a character above U+00FF. */
export type InvalidRedirectReason =
  | "empty"
  | "conflict"
  | "not_bytes"
  | "too_long"
  | "control_char"
  | "backslash"
  | "unparsable";

/** Why a Location is a URL that may not be followed. */
export type RejectedRedirectReason = Exclude<UrlReason, InvalidRedirectReason>;

/** FINAL: no Location, so the response is the answer. `block` is set when `reason` is `address`, for logs only. */
export type NextUrl =
  | { readonly kind: "FOLLOW"; readonly url: VettedUrl }
  | { readonly kind: "FINAL" }
  | { readonly kind: "REJECTED"; readonly reason: RejectedRedirectReason; readonly block?: string }
  | { readonly kind: "INVALID"; readonly reason: InvalidRedirectReason };

/**
 * Where a redirect leads. `locationValues` are all Location values of the response, one character per byte. The rules of
 * `vetUrl` are applied to the text as sent; relative references keep the base's origin. Never throws.
 */
export function nextUrl(base: VettedUrl, locationValues: readonly string[], options: VetUrlOptions = {}): NextUrl {
  const [first, ...others] = locationValues;
  if (first === undefined) return { kind: "FINAL" };
  if (others.some((other) => other !== first)) return { kind: "INVALID", reason: "conflict" };
  if (first.length > URL_CHARS_MAX) return { kind: "INVALID", reason: "too_long" };
  const decoded = decodeLocation(first);
  if (decoded === null) return { kind: "INVALID", reason: "not_bytes" };
  const text = trimSpaces(decoded);
  const textReason = vetUrlText(text);
  if (textReason !== null) return refused(textReason);
  if (hasBackslashInPath(text)) return { kind: "INVALID", reason: "backslash" };
  const absolute = toAbsolute(base, text);
  if (absolute === null) return { kind: "INVALID", reason: "unparsable" };
  const vetted = vetUrl(absolute, options);
  return vetted.ok ? { kind: "FOLLOW", url: vetted.url } : refused(vetted.reason, vetted.block);
}

function toAbsolute(base: VettedUrl, text: string): string | null {
  if (hasScheme(text)) return text;
  if (text.startsWith("//")) return base.protocol + text;
  return URL.canParse(text, base.href) ? new URL(text, base.href).href : null;
}

function refused(reason: UrlReason, block?: string): NextUrl {
  if (isInvalidReason(reason)) return { kind: "INVALID", reason };
  return { kind: "REJECTED", reason, ...(block === undefined ? {} : { block }) };
}

function isInvalidReason(reason: UrlReason): reason is UrlReason & InvalidRedirectReason {
  return INVALID_REASONS.has(reason);
}

const INVALID_REASONS: ReadonlySet<string> = new Set([
  "empty",
  "too_long",
  "control_char",
  "backslash",
  "unparsable",
] satisfies InvalidRedirectReason[]);
