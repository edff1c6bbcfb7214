/** A request head that a proxy read. Its password is kept nowhere. */
export type ConnectRequest = {
  readonly method: string;
  /** What stands behind the method: `host:port` of a CONNECT. */
  readonly authority: string;
  /** Lower-case names; without Proxy-Authorization. */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole user name; null when no credentials were sent. */
  readonly userName: string | null;
  /** Bright Data's flags in the user name: `{ country: "us", session: "a1" }`. */
  readonly parameters: Readonly<Record<string, string>>;
  /** The proxy took the credentials. */
  readonly isAuthorized: boolean;
  /** Which connection it came on, counted from 1. */
  readonly connection: number;
};

/** Reads a head. `knows` compares credentials: the user name without Bright Data's flags, and the password. */
export function parseConnectRequest(
  head: string,
  connection: number,
  knows: (userName: string, password: string) => boolean,
): ConnectRequest {
  const [requestLine = "", ...lines] = head.split("\r\n");
  const [method = "", authority = ""] = requestLine.split(" ");
  const headers = new Map(
    lines.map((line) => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()] as const;
    }),
  );
  const authorization = headers.get("proxy-authorization") ?? null;
  headers.delete("proxy-authorization");
  const credentials = authorization === null ? null : decodeBasic(authorization);
  const { base, parameters } = splitUserName(credentials?.userName ?? "");
  return {
    method,
    authority,
    headers: Object.fromEntries(headers),
    userName: credentials?.userName ?? null,
    parameters,
    isAuthorized: credentials !== null && knows(base, credentials.password),
    connection,
  };
}

function decodeBasic(value: string): { readonly userName: string; readonly password: string } | null {
  const [, encoded] = /^Basic ([A-Za-z0-9+/=]+)$/.exec(value) ?? [];
  if (encoded === undefined) return null;
  const [, userName, password] = /^([^:]*):([^]*)$/.exec(Buffer.from(encoded, "base64").toString()) ?? [];
  return userName === undefined || password === undefined ? null : { userName, password };
}

/** Flags without a value. */
const VALUELESS: ReadonlySet<string> = new Set(["raw", "direct", "render", "unblocker", "info", "const"]);

/** `brd-customer-<id>-zone-<zone>` and what follows; any other name has no flags. */
function splitUserName(userName: string): { readonly base: string; readonly parameters: Record<string, string> } {
  const [base] = /^(?:brd|lum)-customer-[^-]+-zone-[^-]+/.exec(userName) ?? [];
  if (base === undefined) return { base: userName, parameters: {} };
  const parts = userName.slice(base.length + 1).split("-");
  const parameters: Record<string, string> = {};
  for (let index = 0; index < parts.length; index += 1) {
    const key = parts[index] ?? "";
    if (key === "") continue;
    if (VALUELESS.has(key)) parameters[key] = "";
    else parameters[key] = parts[(index += 1)] ?? "";
  }
  return { base, parameters };
}
