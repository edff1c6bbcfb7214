import { describe, expect, it } from "vitest";
import { CHROMIUM_PLACES, ChromiumMissing, findChromium } from "./find-chromium.ts";

describe("findChromium", () => {
  it("takes the configured program and no other", () => {
    expect(findChromium("/opt/mine", (file) => file === "/opt/mine")).toBe("/opt/mine");
    expect(() => findChromium("/opt/mine", (file) => file !== "/opt/mine")).toThrow(ChromiumMissing);
  });

  it("takes the first of the usual places that can be run", () => {
    expect(findChromium(null, () => true)).toBe(CHROMIUM_PLACES[0]);
    expect(findChromium(null, (file) => file === "/usr/bin/google-chrome")).toBe("/usr/bin/google-chrome");
  });

  it("names three ways to get one when there is none", () => {
    const ways = /apt-get install chromium.*Google Chrome.*SCRAPER_CHROMIUM_PATH/;
    expect(() => findChromium(null, () => false)).toThrow(ways);
  });
});
