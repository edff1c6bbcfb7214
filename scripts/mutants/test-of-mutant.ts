import type { TestLevel } from "../run-tests.ts";
import type { Mutant } from "./read-mutants.ts";

/** The level a test file belongs to, by its place and name. */
export function levelOf(test: string): TestLevel {
  if (test.startsWith("e2e/")) return "e2e";
  if (test.endsWith(".integration.test.ts")) return "integration";
  return test.endsWith(".fault.test.ts") ? "fault" : "unit";
}

/** Mutants with the same key share one unmutated run. */
export function testKey({ test, name }: Mutant): string {
  return `${test}\n${name}`;
}
