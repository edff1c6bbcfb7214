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

/** The rules of one robots.txt for one product token, the most specific first. No rules: everything is allowed. */
export type RobotsRules = { readonly rules: readonly RobotsRule[] };

/** What a site without robots.txt says. */
export const ALLOW_ALL: RobotsRules = { rules: [] };

type Group = { readonly tokens: Set<string>; readonly rules: RobotsRule[] };

/**
 * Reads a robots.txt (RFC 9309) for one product token: the rules of all groups that name it, else of all groups for `*`.
 * Bytes past 500 KiB, rules past 10,000, unknown lines and rules outside a group are ignored. Never throws.
 */
export function parseRobots(body: Uint8Array, productToken: string): RobotsRules {
  const groups = readGroups(toLines(body));
  const token = productToken.toLowerCase();
  const own = groups.filter(({ tokens }) => tokens.has(token));
  const chosen = own.length > 0 ? own : groups.filter(({ tokens }) => tokens.has("*"));
  const rules = chosen.flatMap((group) => group.rules).slice(0, ROBOTS_RULES_MAX);
  // The longest pattern decides, and Allow between equals: the first match in this order is the answer.
  return { rules: rules.toSorted((a, b) => b.pattern.length - a.pattern.length || Number(b.allow) - Number(a.allow)) };
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

function readGroups(lines: readonly string[]): Group[] {
  const groups: Group[] = [];
  let current: Group | null = null;
  let isOpen = false; // whether another user-agent line still joins the current group
  for (const line of lines) {
    const { key, value } = readLine(line);
    if (key === "user-agent") {
      if (current === null || !isOpen) {
        current = { tokens: new Set(), rules: [] };
        groups.push(current);
        isOpen = true;
      }
      const token = readToken(value);
      if (token !== null) current.tokens.add(token);
    } else if (key === "allow" || key === "disallow") {
      isOpen = false;
      if (current !== null && value !== "") {
        current.rules.push({ allow: key === "allow", pattern: canonicalisePattern(value) });
      }
    }
  }
  return groups;
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
