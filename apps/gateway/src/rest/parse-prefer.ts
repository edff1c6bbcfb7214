import { WAIT_SECONDS_MAX } from "@keble-scraper/contract";

const WAIT = /^[ \t]*wait[ \t]*=[ \t]*(?:"(\d{1,9})"|(\d{1,9}))[ \t]*(?:;.*)?$/iu;

/**
 * The seconds that a `Prefer` header (RFC 7240) wants to wait, cut to 60. Undefined when it names no wait of at least a
 * second: a preference that can't be met is passed over, not refused. Of several, the first counts.
 */
export function parsePreferredWait(header: string | undefined): number | undefined {
  for (const preference of (header ?? "").split(",")) {
    const match = WAIT.exec(preference);
    if (match !== null) {
      const seconds = Number(match[1] ?? match[2]);
      return seconds === 0 ? undefined : Math.min(seconds, WAIT_SECONDS_MAX);
    }
  }
  return undefined;
}
