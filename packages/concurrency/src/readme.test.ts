import { expect, it } from "vitest";

const PAGE: string = "../README.md?raw";

// The figures are easily quoted as a licence to go wider; they are not one, and the page must keep saying so.
it("the rationale names both caveats: direct path only, and 250 is no measured limit", async () => {
  const page = (await import(PAGE)) as { default: string };
  expect(page.default).toMatch(/ladder ran on the direct path/i);
  expect(page.default).toMatch(/250 is the largest value tried, not an edge/i);
});
