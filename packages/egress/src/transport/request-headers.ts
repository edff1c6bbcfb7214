import type { VettedUrl } from "../policy/vet-url.ts";

/** The only headers a caller may set; the rest are ours. */
export const CALLER_HEADERS = [
  "accept",
  "accept-language",
  "user-agent",
  "referer",
  "if-none-match",
  "if-modified-since",
] as const;

const DEFAULT_ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/** What Node 20 decodes without ambiguity: zstd is missing there, and "deflate" means two things. */
const ACCEPT_ENCODING = "gzip, br";

/**
 * The headers of a request for a page, as undici's flat list. `callerHeaders` were checked; what is not on the list above
 * is left out all the same. They are sent as long as a chain of redirects stays on its first origin.
 */
export function toRequestHeaders(
  url: VettedUrl,
  callerHeaders: Readonly<Record<string, string>>,
  userAgent: string,
): string[] {
  const own = new Map(Object.entries(callerHeaders).map(([name, value]) => [name.toLowerCase(), value]));
  const headers = ["host", hostHeader(url), "user-agent", own.get("user-agent") ?? userAgent];
  headers.push("accept", own.get("accept") ?? DEFAULT_ACCEPT, "accept-encoding", ACCEPT_ENCODING);
  for (const name of CALLER_HEADERS) {
    const value = own.get(name);
    if (value !== undefined && name !== "user-agent" && name !== "accept") headers.push(name, value);
  }
  return headers;
}

/** Whether the caller asked for a page only if it changed. */
export function isConditional(callerHeaders: Readonly<Record<string, string>>): boolean {
  return Object.keys(callerHeaders).some((name) => /^if-(?:none-match|modified-since)$/i.test(name));
}

/** The Host header: the name without a trailing dot, the port only where it is not the scheme's own. */
export function hostHeader(url: VettedUrl): string {
  const isDefaultPort = url.port === (url.protocol === "https:" ? 443 : 80);
  return `${url.name ?? url.host}${isDefaultPort ? "" : `:${url.port}`}`;
}
