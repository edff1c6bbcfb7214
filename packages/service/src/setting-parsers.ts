/** A host and port that an operator listed: the host in lower case, an IPv6 address without brackets. */
export type HostPort = { readonly host: string; readonly port: number };

const HOST_PORTS_MAX = 64;
const HOST = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*$/u;
const IPV6 = /^\[([0-9a-f:.]{2,45})\]$/u;
const LOOPBACK_V4 = /^127\.\d{1,3}\.\d{1,3}\.\d{1,3}$/u;

/** Addresses and names at which clouds hand out credentials to whoever asks from inside. Never a callback's receiver. */
const METADATA_HOSTS: ReadonlySet<string> = new Set([
  "169.254.169.254",
  "169.254.170.2",
  "100.100.100.200",
  "192.0.0.192",
  "fd00:ec2::254",
  "metadata",
  "metadata.google.internal",
  "metadata.goog",
  "instance-data",
]);

/** `host:port, host:port`: exact hosts in their plain spelling, each with its port, at most 64. */
export function parseHostPorts(text: string): readonly HostPort[] | undefined {
  const entries = text
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
  if (entries.length > HOST_PORTS_MAX) {
    return undefined;
  }
  const parsed = entries.map(parseHostPort);
  return parsed.every((entry) => entry !== undefined) ? parsed : undefined;
}

function parseHostPort(entry: string): HostPort | undefined {
  const colon = entry.lastIndexOf(":");
  const name = entry.slice(0, colon);
  const port = entry.slice(colon + 1);
  if (colon < 1 || !/^[1-9]\d{0,4}$/u.test(port) || Number(port) > 65_535) {
    return undefined;
  }
  const ipv6 = IPV6.exec(name)?.[1];
  const host = ipv6 === undefined ? plainHost(name) : plainIpv6(ipv6);
  return host === undefined ? undefined : { host, port: Number(port) };
}

/** A name, or an IPv4 address in dotted decimal; numeric spellings that another parser would read as an address are refused. */
function plainHost(name: string): string | undefined {
  if (name.length > 253 || !HOST.test(name)) {
    return undefined;
  }
  return parseUrl(`http://${name}/`)?.hostname === name ? name : undefined;
}

function plainIpv6(address: string): string | undefined {
  return parseUrl(`http://[${address}]/`)?.hostname.slice(1, -1);
}

/** True for this machine's own addresses and names, IPv4 inside IPv6 and the unspecified address among them. */
export function isLoopbackHost(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    LOOPBACK_V4.test(host) ||
    host === "0.0.0.0" ||
    host === "::1" ||
    host === "::" ||
    /^::ffff:7f[0-9a-f]{2}:[0-9a-f]{1,4}$/u.test(host)
  );
}

/** True for the hosts at which clouds hand out credentials, and for the link-local range they lie in. */
export function isMetadataHost(host: string): boolean {
  return METADATA_HOSTS.has(host) || host.startsWith("169.254.") || host.startsWith("::ffff:a9fe:");
}

/** 32 bytes as 64 hexadecimal digits, or as base64 or base64url. */
export function parseSecretKey(text: string): Buffer | undefined {
  if (/^[0-9a-fA-F]{64}$/u.test(text)) {
    return Buffer.from(text, "hex");
  }
  if (!/^[A-Za-z0-9+/_-]{43}=?$/u.test(text)) {
    return undefined;
  }
  const bytes = Buffer.from(text, "base64");
  return bytes.length === 32 ? bytes : undefined;
}

/** A URL of one of the schemes, with a host; as written, no fragment. */
export function urlParser(
  schemes: readonly string[],
  options: { readonly bare?: true } = {},
): (text: string) => string | undefined {
  return (text) => {
    const url = text.length <= 2_000 ? parseUrl(text) : undefined;
    if (!url || !schemes.includes(url.protocol.slice(0, -1)) || url.hash !== "" || url.hostname === "") {
      return undefined;
    }
    const isBare = url.username === "" && url.password === "" && url.search === "";
    return options.bare && !isBare ? undefined : text.replace(/\/+$/u, "");
  };
}

/**
 * The http URL of a CONNECT proxy: user name, password, host and port, and nothing behind them. A reserved character in
 * the user name or the password is percent-encoded.
 */
export function parseProxyUrl(text: string): string | undefined {
  const url = text.length <= 2_000 ? parseUrl(text) : undefined;
  if (url?.protocol !== "http:" || url.hostname === "" || url.pathname !== "/") {
    return undefined;
  }
  const isWhole = isCredential(url.username) && isCredential(url.password) && url.search === "" && url.hash === "";
  return isWhole ? text.replace(/\/+$/u, "") : undefined;
}

/** There, and without a control character, which would break a header's line. One that isn't percent-encoded stays as it is. */
function isCredential(encoded: string): boolean {
  return encoded !== "" && !/\p{Cc}/u.test(decoded(encoded));
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** Visible ASCII without blanks, within lengths. */
export function tokenParser(min: number, max: number): (text: string) => string | undefined {
  return (text) => (text.length >= min && text.length <= max && /^[\x21-\x7e]+$/u.test(text) ? text : undefined);
}

/** One line of printable ASCII, such as a header's value. */
export function lineParser(max: number): (text: string) => string | undefined {
  return (text) => (text.length <= max && /^[\x20-\x7e]+$/u.test(text) ? text : undefined);
}

/** A path without control characters, at most 1,000 characters. */
export function parsePath(text: string): string | undefined {
  return text.length <= 1_000 && !/\p{Cc}/u.test(text) ? text : undefined;
}

function parseUrl(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined;
}
