import { SubmitJob } from "@keble-scraper/contract";
import { SETTINGS } from "@keble-scraper/service";
import { expect, test } from "vitest";

// A ceiling under the contract's default would refuse every job that names no size.
test("no setting of the largest body refuses a job that names none", () => {
  const { maxBodyBytes } = SubmitJob.parse({ target: { url: "https://a.example/" } }).limits;
  const { parse } = SETTINGS.SCRAPER_BODY_BYTES_MAX;
  expect(parse(String(maxBodyBytes))).toBe(maxBodyBytes);
  expect(parse(String(maxBodyBytes - 1))).toBeUndefined();
});
