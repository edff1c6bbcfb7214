import { describe, expect, it } from "vitest";
import { unwrapChromeText } from "./chrome-text.ts";

const CHROME =
  '<html><head><meta name="color-scheme" content="light dark"></head><body><pre style="word-wrap: break-word;">';

describe("a text file as Chrome shows it", () => {
  it.each([
    [
      `${CHROME}User-agent: *\nDisallow: /a?b&amp;c=&lt;d&gt;\n</pre></body></html>`,
      "User-agent: *\nDisallow: /a?b&c=<d>\n",
    ],
    [`${CHROME}&amp;lt;</pre></body></html>`, "&lt;"],
    [`${CHROME}cut`, "cut"],
    [`${CHROME}</pre></body></html>`, ""],
    [
      "<html><body><h1>Not found</h1><pre>x</pre></body></html>",
      "<html><body><h1>Not found</h1><pre>x</pre></body></html>",
    ],
    ["User-agent: *", "User-agent: *"],
    ["", ""],
  ])("%j", (dom, text) => {
    expect(unwrapChromeText(Buffer.from(dom)).toString("utf8")).toBe(text);
  });

  it("is looked for in the first bytes only, however large the page is", () => {
    const page = `<html>${"<".repeat(2_000_000)}`;
    const startedAt = performance.now();
    expect(unwrapChromeText(Buffer.from(page)).length).toBe(page.length);
    expect(performance.now() - startedAt).toBeLessThan(1_000);
  });
});
