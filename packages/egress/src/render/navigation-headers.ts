import { CALLER_HEADERS } from "../transport/request-headers.ts";

/**
 * The caller's headers that a navigation carries in place of the browser's own, by lower-case name. The User-Agent is not
 * among them: it is the whole context's.
 */
export function toNavigationHeaders(callerHeaders: Readonly<Record<string, string>>): ReadonlyMap<string, string> {
  const own = new Map(Object.entries(callerHeaders).map(([name, value]) => [name.toLowerCase(), value]));
  const sent = new Map<string, string>();
  for (const name of CALLER_HEADERS) {
    const value = own.get(name);
    if (value !== undefined && name !== "user-agent") sent.set(name, value);
  }
  return sent;
}
