import { type Host, readHost } from "./read-host.ts";

/** Exact hosts and ports that an operator listed. */
export type AllowedTargets = { readonly keys: ReadonlySet<string> };

/** `invalidEntries` are positions in the list, counted from 0; the values stay out of messages. */
export type AllowedTargetsResult =
  | { readonly ok: true; readonly targets: AllowedTargets }
  | { readonly ok: false; readonly invalidEntries: readonly number[] };

/** Nothing is listed. */
export const NO_ALLOWED_TARGETS: AllowedTargets = { keys: new Set() };

const ENTRY = /^(?<host>\[[0-9a-f:.]+\]|[^:/?#@\\%\s[\]]+):(?<port>[1-9][0-9]{0,4})$/i;

/**
 * Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:3000` or `origin:80`. The port is required; there are no wildcards and
 * no schemes; a host obeys the spelling rules of URLs.
 */
export function parseAllowedTargets(list: readonly string[]): AllowedTargetsResult {
  const keys = list.map(parseEntry);
  const invalidEntries = keys.flatMap((key, index) => (key === null ? [index] : []));
  if (invalidEntries.length > 0) return { ok: false, invalidEntries };
  return { ok: true, targets: { keys: new Set(keys.filter((key) => key !== null)) } };
}

/** Whether exactly this host and port are listed. */
export function isAllowedTarget(targets: AllowedTargets, host: Host, port: number): boolean {
  return targets.keys.has(keyOf(host, port));
}

function parseEntry(entry: string): string | null {
  const { host: raw, port } = ENTRY.exec(entry.trim())?.groups ?? {};
  if (raw === undefined || Number(port) > 65_535 || !URL.canParse(`http://${raw}/`)) return null;
  const url = new URL(`http://${raw}/`);
  const read = readHost(raw, url.hostname);
  return read.ok ? keyOf(read.host, Number(port)) : null;
}

function keyOf(host: Host, port: number): string {
  return host.kind === "ADDRESS" ? `[${host.address}]:${port}` : `${host.name}:${port}`;
}
