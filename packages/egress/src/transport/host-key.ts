import type { VettedUrl } from "../policy/vet-url.ts";

/** What a host's rate, slots and holds are kept by: its name or address, with the port where it is not its scheme's own. */
export function hostKeyOf(url: VettedUrl): string {
  const host = url.name ?? url.host;
  return url.port === (url.protocol === "https:" ? 443 : 80) ? host : `${host}:${url.port}`;
}
