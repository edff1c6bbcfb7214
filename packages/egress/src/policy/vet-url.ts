import { type AllowedTargets, isAllowedTarget } from "./allowed-targets.ts";
import { isBadPort } from "./bad-ports.ts";
import type { AddressPolicy } from "./classify-address.ts";
import { type Host, type HostSpellingReason, readHost } from "./read-host.ts";
import type { Reach } from "./reach.ts";
import {
  type AuthorityReason,
  readAuthority,
  type TextReason,
  trimSpaces,
  URL_CHARS_MAX,
  vetUrlText,
} from "./url-text.ts";
import { refusedBlock } from "./vet-addresses.ts";
import { isMetadataName, type NameReason, vetName } from "./vet-name.ts";

/** Why a URL is refused. For logs and tests: callers are shown one neutral text. */
export type UrlReason =
  | TextReason
  | AuthorityReason
  | "unparsable"
  | HostSpellingReason
  | "address"
  | NameReason
  | "port";

/**
 * A URL that may be requested. Only `href` is passed on, never the text it came from.
 * - `href`: normalised, without fragment. `host`: as in `href`, without port, IPv6 in brackets. `origin`: scheme, host, port.
 * - `name`: the DNS name in A-labels without trailing dot (for resolving, TLS and Host); null for an address.
 * - `address`: the literal without brackets, vetted; null for a name.
 * - `port`: the effective one. `target`: path and query as sent.
 * - `reach`: where its name may lead; pass it to `vetAddresses`. Anything but PUBLIC means that an operator listed it.
 */
export type VettedUrl = {
  readonly href: string;
  readonly protocol: "http:" | "https:";
  readonly host: string;
  readonly name: string | null;
  readonly address: string | null;
  readonly port: number;
  readonly target: string;
  readonly origin: string;
  readonly reach: Reach;
};

/** `block` is set when `reason` is `address`, and is for logs only. */
export type VetUrlResult =
  | { readonly ok: true; readonly url: VettedUrl }
  | { readonly ok: false; readonly reason: UrlReason; readonly block?: string };

/**
 * `allowedTargets` skips the rules about addresses, names and ports for exactly the hosts and ports it lists, never those
 * about spelling, and never for metadata services; absent means nothing is listed. `listedReach` is how far those may
 * lead; absent means LOCAL.
 */
export type VetUrlOptions = AddressPolicy & {
  readonly allowedTargets?: AllowedTargets;
  readonly listedReach?: Exclude<Reach, "PUBLIC">;
};

/**
 * Vets a URL as a caller or an origin wrote it. What is accepted means the same host to every URL parser; what another
 * parser could read differently is refused. Never throws.
 */
export function vetUrl(raw: string, options: VetUrlOptions = {}): VetUrlResult {
  const text = trimSpaces(raw);
  const textReason = vetUrlText(text);
  if (textReason !== null) return { ok: false, reason: textReason };
  const authority = readAuthority(text);
  if (!authority.ok) return authority;
  if (!URL.canParse(text)) return { ok: false, reason: "unparsable" };
  const url = new URL(text);
  url.hash = "";
  // Percent-encoding can make it longer than it was written; what we pass on has the same bound.
  if (url.href.length > URL_CHARS_MAX) return { ok: false, reason: "too_long" };
  const read = readHost(authority.rawHost, url.hostname);
  return read.ok ? vetHostAndPort(url, read.host, options) : read;
}

function vetHostAndPort(url: URL, host: Host, options: VetUrlOptions): VetUrlResult {
  const protocol = url.protocol === "https:" ? "https:" : "http:";
  const port = url.port === "" ? DEFAULT_PORTS[protocol] : Number(url.port);
  const listed = options.allowedTargets !== undefined && isAllowedTarget(options.allowedTargets, host, port);
  const reach = listed ? (options.listedReach ?? "LOCAL") : "PUBLIC";
  if (host.kind === "ADDRESS") {
    const block = refusedBlock(host.address, { ...options, reach }, "LITERAL");
    if (block !== null) return { ok: false, reason: "address", block };
  } else {
    const reason = vetNameWithin(host.name, reach);
    if (reason !== null) return { ok: false, reason };
  }
  if (reach === "PUBLIC" && isBadPort(port)) return { ok: false, reason: "port" };
  return {
    ok: true,
    url: {
      href: url.href,
      protocol,
      host: url.hostname,
      name: host.kind === "NAME" ? host.name : null,
      address: host.kind === "ADDRESS" ? host.address : null,
      port,
      target: url.pathname + url.search,
      origin: url.origin,
      reach,
    },
  };
}

const DEFAULT_PORTS = { "http:": 80, "https:": 443 } as const;

function vetNameWithin(name: string, reach: Reach): NameReason | null {
  if (reach === "PUBLIC") return vetName(name);
  return isMetadataName(name) ? "host_special_use" : null;
}
