import { type AllowedTargets, parseAllowedTargets } from "./allowed-targets.ts";

/** Targets that the settings have parsed already, as the policy asks for them. Throws on an entry it can't read. */
export function allowedTargetsOf(targets: readonly { readonly host: string; readonly port: number }[]): AllowedTargets {
  const parsed = parseAllowedTargets(
    targets.map(({ host, port }) => (host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`)),
  );
  if (!parsed.ok) throw new Error(`unreadable allowed targets at positions ${parsed.invalidEntries.join(", ")}`);
  return parsed.targets;
}
