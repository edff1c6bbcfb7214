import { canonicalisePattern, matchesPattern } from "./robots-pattern.ts";

/** Bytes of a robots.txt that are read; the rest is ignored (RFC 9309 section 2.5 asks for at least this much). */
export const ROBOTS_BYTES_MAX = 500 * 1024;

/**
 * Rules that are read. With this many and the longest target, the worst pair of site and target costs well under a second
 * of a process that other jobs share.
 */
export const ROBOTS_RULES_MAX = 10_000;

/** One rule, its pattern canonical. */
type RobotsRule = { readonly allow: boolean; readonly pattern: string };

/**
 * The rules of one robots.txt for one product token, the most specific first. No rules: everything is allowed.
 * `crawlDelayMs`: what it asks between two requests, at most `CRAWL_DELAY_MS_MAX`; null: nothing.
 */
export type RobotsRules = { readonly rules: readonly RobotsRule[]; readonly crawlDelayMs: number | null };

/** What a site without robots.txt says. */
export const ALLOW_ALL: RobotsRules = { rules: [], crawlDelayMs: null };

/** A site that asks for more than a minute between two requests gets a minute: some ask for days by mistake. */
export const CRAWL_DELAY_MS_MAX = 60_000;

type Group = { readonly tokens: Set<string>; readonly rules: RobotsRule[] };

/** A crawl delay and the user-agent lines right before it. */
type Delay = { readonly tokens: ReadonlySet<string>; readonly ms: number };

/**
 * Reads a robots.txt (RFC 9309) for one product token: the rules of all groups that name it, else of all groups for `*`,
 * and the longest crawl delay among those. Bytes past 500 KiB, rules past 10,000, unknown lines and rules outside a group
 * are ignored. Never throws.
 */
export function parseRobots(body: Uint8Array, productToken: string): RobotsRules {
  const { groups, delays } = readGroups(toLines(body));
  const token = productToken.toLowerCase();
  const own = groups.filter(({ tokens }) => tokens.has(token));
  const chosen = own.length > 0 ? own : groups.filter(({ tokens }) => tokens.has("*"));
  const delayMs = longest(delays, own.length > 0 ? token : "*");
  const rules = chosen.flatMap((group) => group.rules).slice(0, ROBOTS_RULES_MAX);
  // The longest pattern decides, and Allow between equals: the first match in this order is the answer.
  return {
    rules: rules.toSorted((a, b) => b.pattern.length - a.pattern.length || Number(b.allow) - Number(a.allow)),
    crawlDelayMs: delayMs === 0 ? null : delayMs,
  };
}

/** Whether the rules allow a request target (path and query as sent). `/robots.txt` itself always is. */
export function isAllowed({ rules }: RobotsRules, target: string): boolean {
  if (target === "/robots.txt") return true;
  const path = canonicalisePattern(target);
  return rules.find(({ pattern }) => matchesPattern(pattern, path))?.allow ?? true;
}

function toLines(body: Uint8Array): string[] {
  // The decoder drops a byte order mark and replaces what is no UTF-8.
  const lines = new TextDecoder().decode(body.subarray(0, ROBOTS_BYTES_MAX)).split(/\r\n|\r|\n/);
  // A line that was cut could say "Disallow: /" where the site said "Disallow: /private".
  return body.length > ROBOTS_BYTES_MAX ? lines.slice(0, -1) : lines;
}

function readGroups(lines: readonly string[]): { readonly groups: Group[]; readonly delays: Delay[] } {
  const groups: Group[] = [];
  const delays: Delay[] = [];
  let current: Group | null = null;
  let isOpen = false; // whether another user-agent line still joins the current group
  // Not in the standard, so it must not end a list of agents there (section 2.2.4). Its own it does end: sites write a delay
  // for one crawler, without rules, right before the rules for all.
  let agents = new Set<string>();
  let isListing = false;
  for (const line of lines) {
    const { key, value } = readLine(line);
    if (key === "user-agent") {
      if (current === null || !isOpen) {
        current = { tokens: new Set(), rules: [] };
        groups.push(current);
        isOpen = true;
      }
      const token = readToken(value);
      if (!isListing) agents = new Set();
      isListing = true;
      if (token !== null) {
        current.tokens.add(token);
        agents.add(token);
      }
    } else if (key === "crawl-delay") {
      isListing = false;
      const ms = readDelayMs(value);
      if (ms !== null) delays.push({ tokens: agents, ms });
    } else if (key === "allow" || key === "disallow") {
      isOpen = false;
      isListing = false;
      if (current !== null && value !== "") {
        current.rules.push({ allow: key === "allow", pattern: canonicalisePattern(value) });
      }
    }
  }
  return { groups, delays };
}

function longest(delays: readonly Delay[], token: string): number {
  let ms = 0;
  for (const delay of delays) if (delay.tokens.has(token)) ms = Math.max(ms, delay.ms);
  return ms;
}

/** Seconds, whole or decimal; null for anything else. */
function readDelayMs(value: string): number | null {
  if (!/^\d{1,12}(?:\.\d{0,12})?$|^\.\d{1,12}$/.test(value)) return null;
  return Math.min(Math.ceil(Number(value) * 1_000), CRAWL_DELAY_MS_MAX);
}

function readLine(line: string): { key: string; value: string } {
  const hash = line.indexOf("#");
  const text = hash === -1 ? line : line.slice(0, hash);
  const colon = text.indexOf(":");
  if (colon === -1) return { key: "", value: "" };
  return { key: text.slice(0, colon).trim().toLowerCase(), value: text.slice(colon + 1).trim() };
}

/** The product token a user-agent line begins with: sites append versions and words to it. */
function readToken(value: string): string | null {
  if (/^\*(?:\s|$)/.test(value)) return "*";
  return /^[a-z_-]+/i.exec(value)?.[0].toLowerCase() ?? null;
}
