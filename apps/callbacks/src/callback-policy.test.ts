import { createLogger } from "@keble-scraper/service";
import { expect, test } from "vitest";
import { logAllowedReceivers } from "./callback-policy.ts";

function linesFor(allowedReceivers: readonly { host: string; port: number }[]): string[] {
  const lines: string[] = [];
  const logger = createLogger({
    name: "test",
    level: "info",
    destination: { write: (line: string) => void lines.push(line) },
  });
  logAllowedReceivers({ callbacks: { allowedReceivers } as never }, logger);
  return lines;
}

test("W7 receivers that an operator has opened are named in the log, and nothing is said without any", () => {
  expect(linesFor([])).toEqual([]);
  const [line = ""] = linesFor([{ host: "hooks.lan", port: 8080 }]);
  expect(JSON.parse(line)).toMatchObject({ msg: "receivers.allowed", receivers: ["hooks.lan:8080"] });
});
