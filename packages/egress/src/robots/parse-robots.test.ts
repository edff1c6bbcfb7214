import fc from "fast-check";
import * as robotsParserModule from "robots-parser";
import { describe, expect, test } from "vitest";
import { isAllowed, parseRobots, ROBOTS_BYTES_MAX, ROBOTS_RULES_MAX } from "./parse-robots.ts";

/** The library is a CommonJS function; its types say otherwise. */
const robotsParser = robotsParserModule.default as unknown as (
  url: string,
  text: string,
) => { isAllowed: (url: string, token: string) => boolean };

const TOKEN = "Keble-Scraper";

function allows(text: string, target: string): boolean {
  return isAllowed(parseRobots(Buffer.from(text), TOKEN), target);
}

describe("groups", () => {
  test.each([
    ["no group", "Disallow: /\n", true],
    ["everybody", "User-agent: *\nDisallow: /", false],
    [
      "our own group wins over everybody's",
      "User-agent: *\nDisallow: /\nUser-agent: keble-scraper\nDisallow: /y",
      true,
    ],
    ["our group without rules allows all", "User-agent: *\nDisallow: /\n\nUser-agent: keble-scraper\nDisallow:", true],
    ["letter case", "USER-AGENT: KEBLE-scraper\nDISALLOW: /", false],
    ["version behind the token", "User-agent: keble-scraper/1.0\nDisallow: /", false],
    ["words behind the token", "User-agent: keble-scraper bot\nDisallow: /", false],
    ["another token that begins alike", "User-agent: keble-scraper-images\nDisallow: /", true],
    ["a token that ours begins with", "User-agent: keble\nDisallow: /", true],
    ["several agents on one group", "User-agent: a\nUser-agent: keble-scraper\nUser-agent: b\nDisallow: /", false],
    ["other lines do not split agents", "User-agent: keble-scraper\nSitemap: x\nUser-agent: b\nDisallow: /", false],
    ["other lines do not end a group", "User-agent: *\nCrawl-delay: 1\n\nDisallow: /", false],
    ["rules end the list of agents", "User-agent: keble-scraper\nDisallow: /y\nUser-agent: b\nDisallow: /", true],
    [
      "two groups of ours are one",
      "User-agent: keble-scraper\nAllow: /y\n\nUser-agent: keble-scraper\nDisallow: /",
      false,
    ],
    ["comments and spaces", " User-agent : * # all\n\tDisallow : / # none", false],
    ["a byte order mark", "\ufeffUser-agent: *\nDisallow: /", false],
    ["carriage returns", "User-agent: *\rDisallow: /", false],
    ["an HTML page instead", "<!doctype html><title>User-agent: *</title>", true],
    ["a name from Object.prototype", "User-agent: __proto__\nDisallow: /", true],
  ])("%s", (_name, text, allowed) => {
    expect(allows(text, "/x")).toBe(allowed);
  });
});

describe("crawl delay", () => {
  test.each([
    ["seconds", "User-agent: *\nCrawl-delay: 10", 10_000],
    ["decimals", "User-agent: *\nCrawl-delay: 0.5", 500],
    ["decimals without a whole part", "User-agent: *\nCrawl-delay: .25", 250],
    ["a point without decimals", "User-agent: *\nCrawl-delay: 2.", 2_000],
    ["less than a millisecond, rounded up", "User-agent: *\nCrawl-delay: 0.0001", 1],
    ["zero is nothing", "User-agent: *\nCrawl-delay: 0", null],
    ["more than a minute is a minute", "User-agent: *\nCrawl-delay: 86400", 60_000],
    ["digits without end", `User-agent: *\nCrawl-delay: ${"9".repeat(400)}`, null],
    ["a sign", "User-agent: *\nCrawl-delay: -1", null],
    ["a plus", "User-agent: *\nCrawl-delay: +1", null],
    ["an exponent", "User-agent: *\nCrawl-delay: 1e1", null],
    ["a unit", "User-agent: *\nCrawl-delay: 10s", null],
    ["words", "User-agent: *\nCrawl-delay: slow", null],
    ["infinity", "User-agent: *\nCrawl-delay: Infinity", null],
    ["hexadecimal", "User-agent: *\nCrawl-delay: 0x10", null],
    ["nothing", "User-agent: *\nCrawl-delay:", null],
    ["none", "User-agent: *\nDisallow: /x", null],
    ["outside a group", "Crawl-delay: 10\nUser-agent: *\nDisallow: /x", null],
    ["letter case and comments", "USER-AGENT: *\nCRAWL-DELAY : 3 # please", 3_000],
    ["behind rules", "User-agent: *\nDisallow: /x\nCrawl-delay: 4", 4_000],
    ["of another's group", "User-agent: bot\nCrawl-delay: 10\nDisallow: /x\n\nUser-agent: *\nDisallow: /y", null],
    ["of another's group without rules", "User-agent: bot\nCrawl-delay: 10\n\nUser-agent: *\nDisallow: /y", null],
    [
      "our own group's, not everybody's",
      "User-agent: *\nCrawl-delay: 10\n\nUser-agent: keble-scraper\nCrawl-delay: 1\nDisallow: /y",
      1_000,
    ],
    [
      "our own group that asks nothing",
      "User-agent: *\nCrawl-delay: 10\n\nUser-agent: keble-scraper\nDisallow: /y",
      null,
    ],
    ["the longest of several", "User-agent: *\nCrawl-delay: 1\n\nUser-agent: *\nCrawl-delay: 7", 7_000],
    ["junk beside a readable one", "User-agent: *\nCrawl-delay: x\nCrawl-delay: 7", 7_000],
    ["of several agents", "User-agent: a\nUser-agent: keble-scraper\nCrawl-delay: 7", 7_000],
  ])("W2 %s", (_what, text, ms) => {
    expect(parseRobots(Buffer.from(text), TOKEN).crawlDelayMs).toBe(ms);
  });

  test("it does not end a list of agents, which is the standard's own", () => {
    const text = "User-agent: keble-scraper\nCrawl-delay: 1\nUser-agent: b\nDisallow: /x";
    expect(allows(text, "/x")).toBe(false);
    expect(parseRobots(Buffer.from(text), TOKEN).crawlDelayMs).toBe(1_000);
  });
});

describe("patterns", () => {
  test.each([
    ["Disallow: /a\nAllow: /a/b", "/a/b/c", true],
    ["Allow: /a\nDisallow: /a/b", "/a/b/c", false],
    ["Disallow: /a\nAllow: /a", "/a", true],
    ["Disallow: /a/b\nAllow: /*/b", "/a/b", true],
    ["Disallow: /a", "/A", true],
    ["Disallow: /*.php", "/x/y.php5?z", false],
    ["Disallow: /*.php$", "/x/y.php", false],
    ["Disallow: /*.php$", "/x/y.php?z", true],
    ["Disallow: /*.php$", "/x.php/y.php", false],
    ["Disallow: /a$", "/a", false],
    ["Disallow: /a$", "/ab", true],
    ["Disallow: /a$b", "/a$bc", false],
    ["Disallow: *x", "/ax", false],
    ["Disallow: *", "/", false],
    ["Disallow: /*$", "/", false],
    ["Disallow: a", "/a", true],
    ["Disallow: /ab*ab$", "/ab", true],
    ["Disallow: /ab*ab$", "/abab", false],
    ["Disallow: /**b", "/ab", false],
    ["Disallow: /?q=", "/?q=1", false],
    ["Disallow: /", "/robots.txt", true],
    ["Disallow: /%7ejoe", "/~joe", false],
    ["Disallow: /~joe", "/%7Ejoe", false],
    ["Disallow: /%62", "/b", false],
    ["Disallow: /a%3cb", "/a%3Cb", false],
    ["Disallow: /a%2Fb", "/a/b", true],
    ["Disallow: /ツ", "/%E3%83%84", false],
    ["Disallow: /%E3%83%84", "/%e3%83%84", false],
    ["Disallow: /a[b]|", "/a[b]|", false],
    ["Disallow: /100%", "/100%", false],
  ])("%j makes %s %s", (rules, target, allowed) => {
    expect(allows(`User-agent: *\n${rules}`, target)).toBe(allowed);
  });

  test("a public library agrees wherever it follows the standard", () => {
    expect.hasAssertions();
    const pattern = fc
      .string({ unit: fc.constantFrom("/", "a", "b", "*", "$", "%2f"), maxLength: 8 })
      .map((text) => `/${text}`);
    const rule = fc.record({ allow: fc.boolean(), pattern });
    const target = fc
      .string({ unit: fc.constantFrom("/", "a", "b", "%2F"), maxLength: 10 })
      .map((text) => `/x/${text}`);
    const body = fc.tuple(
      fc.array(rule, { maxLength: 8 }),
      fc.oneof(
        target,
        pattern.map((text) => text.replaceAll("*", "a")),
      ),
    );
    fc.assert(
      fc.property(body, ([rules, path]) => {
        const text = `User-agent: *\n${rules.map((r) => `${r.allow ? "Allow" : "Disallow"}: ${r.pattern}`).join("\n")}`;
        const url = new URL(path.replace(/^\/+/, "/"), "https://example.com");
        const theirs = robotsParser("https://example.com/robots.txt", text).isAllowed(url.href, TOKEN);
        expect({ text, path, allowed: allows(text, url.pathname) }).toEqual({ text, path, allowed: theirs });
      }),
      { numRuns: 3000 },
    );
  });
});

describe("bounds", () => {
  test("bytes past 500 KiB are ignored, and so is the line that was cut", () => {
    const head = "User-agent: *\n";
    const tail = "Disallow: /private";
    const fill = "#".repeat(ROBOTS_BYTES_MAX - head.length - tail.length - 1);
    expect(allows(`${head}${fill}\n${tail}`, "/private")).toBe(false);
    expect(allows(`${head}${fill}\n${tail}/x`, "/private")).toBe(true);
    expect(allows(`${head}#${fill}\n${tail}`, "/private")).toBe(true);
    expect(allows(`${head}#${fill}\n\n${tail}`, "/private")).toBe(true);
  });

  test("rules past the 10,000th are ignored", () => {
    const fill = "Disallow: /a\n".repeat(ROBOTS_RULES_MAX - 1);
    expect(allows(`User-agent: *\n${fill}Disallow: /x`, "/x")).toBe(false);
    expect(allows(`User-agent: *\n${fill}Disallow: /a\nDisallow: /x`, "/x")).toBe(true);
  });

  // A site writes its rules and, by redirects, the targets too: matching by backtracking or by sets of positions held a
  // process for seconds, in which it renews no lease.
  test.each([
    ["long patterns", `Disallow: /${"*a".repeat(4000)}b$\n`],
    ["many short patterns", "Disallow: *aaaaab\n"],
  ])("hostile rules cost little: %s", (_name, rule) => {
    const text = `User-agent: *\n${rule.repeat(Math.floor((ROBOTS_BYTES_MAX - 20) / rule.length))}`;
    const before = process.cpuUsage();
    expect(allows(text, `/${"a".repeat(8000)}`)).toBe(true);
    // Of this process, so that what else the machine does is not counted.
    expect(process.cpuUsage(before).user).toBeLessThan(2_000_000);
  });

  test("hostile bytes never throw", () => {
    expect.hasAssertions();
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 400 }), fc.string({ unit: "binary" }), (bytes, target) => {
        const body = Buffer.concat([Buffer.from("User-agent: *\nDisallow: /"), bytes]);
        expect(typeof isAllowed(parseRobots(body, TOKEN), `/${target}`)).toBe("boolean");
      }),
    );
  });
});
