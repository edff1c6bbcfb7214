import { type Host, readHost } from "./read-host.ts";

/** Exact hosts and ports that an operator listed. `names` are the DNS names among the hosts: the system resolves them. */
export type AllowedTargets = { readonly keys: ReadonlySet<string>; readonly names: ReadonlySet<string> };

/** `invalidEntries` are positions in the list, counted from 0; the values stay out of messages. */
export type AllowedTargetsResult =
  | { readonly ok: true; readonly targets: AllowedTargets }
  | { readonly ok: false; readonly invalidEntries: readonly number[] };

/** Nothing is listed. */
export const NO_ALLOWED_TARGETS: AllowedTargets = { keys: new Set(), names: new Set() };

const ENTRY = /^(?<host>\[[0-9a-f:.]+\]|[^:/?#@\\%\s[\]]+):(?<port>[1-9][0-9]{0,4})$/i;

/**
 * Reads `127.0.0.1:8080`, `[::1]:8080`, `localhost:3000` or `origin:80`. The port is required; there are no wildcards and
 * no schemes; a host obeys the spelling rules of URLs.
 */
export function parseAllowedTargets(list: readonly string[]): AllowedTargetsResult {
  const entries = list.map(parseEntry);
  const invalidEntries = entries.flatMap((entry, index) => (entry === null ? [index] : []));
  if (invalidEntries.length > 0) return { ok: false, invalidEntries };
  const listed = entries.filter((entry) => entry !== null);
  const names = listed.flatMap(({ host }) => (host.kind === "NAME" ? [host.name] : []));
  return { ok: true, targets: { keys: new Set(listed.map(keyOf)), names: new Set(names) } };
}

/** Whether exactly this host and port are listed. */
export function isAllowedTarget(targets: AllowedTargets, host: Host, port: number): boolean {
  return targets.keys.has(keyOf({ host, port }));
}

type Entry = { readonly host: Host; readonly port: number };

function parseEntry(text: string): Entry | null {
  const { host: raw, port } = ENTRY.exec(text.trim())?.groups ?? {};
  if (raw === undefined || Number(port) > 65_535 || !URL.canParse(`http://${raw}/`)) return null;
  const read = readHost(raw, new URL(`http://${raw}/`).hostname);
  return read.ok ? { host: read.host, port: Number(port) } : null;
}

function keyOf({ host, port }: Entry): string {
  return host.kind === "ADDRESS" ? `[${host.address}]:${port}` : `${host.name}:${port}`;
}
