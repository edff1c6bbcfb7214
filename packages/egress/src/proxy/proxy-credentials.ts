/** Whose rules a proxy follows: how its user name is written and what its errors mean. */
export type ProxyProvider = "PLAIN" | "BRIGHT_DATA";

/** Where a proxy listens and how it knows us. `host` without brackets; null credentials: it is not asked for any. */
export type ProxyAddress = {
  readonly host: string;
  readonly port: number;
  readonly credentials: { readonly userName: string; readonly password: string } | null;
};

/** How one attempt wants its exit: see `FetchRequest.egress`. */
export type ExitWish = { readonly country: string | null; readonly session: string | null };

/** Which wishes a proxy can serve. `session`: equal ids share an exit. */
export type Narrowing = { readonly country: boolean; readonly session: boolean };

const HTTP_PORT = 80;

/** Reads `http://user:password@host:port`. Throws, without a word of it, on anything else: settings were checked before. */
export function parseProxyUrl(text: string): ProxyAddress {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol !== "http:" || url.hostname === "") throw new Error("a proxy's URL is not an http URL with a host");
  const hasCredentials = url.username !== "" || url.password !== "";
  return {
    host: url.hostname.replace(/^\[(.*)\]$/, "$1"),
    port: url.port === "" ? HTTP_PORT : Number(url.port),
    credentials: hasCredentials ? { userName: decode(url.username), password: decode(url.password) } : null,
  };
}

/**
 * What a proxy can do with a wish. Bright Data reads both from the user name, unless the configured name pins the exit
 * already: a place inside a country, a network or an address. Others have no common way to ask.
 */
export function canNarrow(proxy: { readonly url: string; readonly provider: ProxyProvider }): Narrowing {
  const { credentials } = parseProxyUrl(proxy.url);
  if (proxy.provider !== "BRIGHT_DATA" || credentials === null) return { country: false, session: false };
  const keys = flagsOf(credentials.userName);
  return { country: !keys.some((key) => PLACE_FLAGS.has(key)), session: !keys.some((key) => ADDRESS_FLAGS.has(key)) };
}

/**
 * The value of Proxy-Authorization for one attempt; null when the proxy knows no credentials. Wishes that the proxy can
 * not serve are left out; a country or session of the configured name gives way to the attempt's.
 */
export function toProxyAuthorization(address: ProxyAddress, provider: ProxyProvider, wish: ExitWish): string | null {
  const { credentials } = address;
  if (credentials === null) return null;
  const userName = provider === "BRIGHT_DATA" ? narrow(credentials.userName, wish) : credentials.userName;
  return `Basic ${Buffer.from(`${userName}:${credentials.password}`, "utf8").toString("base64")}`;
}

/** Flags that say where in a country, or which exit: another country beside them is a contradiction. */
const PLACE_FLAGS: ReadonlySet<string> = new Set(["state", "city", "zip", "asn", "carrier", "ip", "gip"]);

/** Flags that name the exit itself: the vendor's own proxy manager drops the session beside them. */
const ADDRESS_FLAGS: ReadonlySet<string> = new Set(["ip", "gip"]);

/** `brd-customer-<id>-zone-<zone>`, with the older prefix too; flags follow. */
const BASE_NAME = /^(?:brd|lum)-customer-[^-]+-zone-[^-]+/;

function narrow(userName: string, wish: ExitWish): string {
  const keys = flagsOf(userName);
  let narrowed = userName;
  if (wish.country !== null && !keys.some((key) => PLACE_FLAGS.has(key))) {
    narrowed = `${without(narrowed, "country")}-country-${checked(wish.country, /^[a-z]{2}$/)}`;
  }
  if (wish.session !== null && !keys.some((key) => ADDRESS_FLAGS.has(key))) {
    narrowed = `${without(narrowed, "session")}-session-${checked(wish.session, /^[a-z0-9]{1,32}$/)}`;
  }
  return narrowed;
}

/** Every part behind the zone: keys and values alike, as only keys of the sets above matter and no value is one. */
function flagsOf(userName: string): readonly string[] {
  return userName.replace(BASE_NAME, "").split("-");
}

function without(userName: string, key: string): string {
  const [base = ""] = BASE_NAME.exec(userName) ?? [];
  return base + userName.slice(base.length).replace(new RegExp(`-${key}-[^-]*`, "g"), "");
}

/** A value with a dash would be another flag, and a malformed one reads as a wrong password (client_10001). */
function checked(value: string, shape: RegExp): string {
  if (!shape.test(value)) throw new Error("a country or session id does not have the shape it was checked for");
  return value;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A plain "%" in a password stays what it is.
    return text;
  }
}
