import { runCommand } from "./run-command.ts";
import { runTests, TEST_LEVELS } from "./run-tests.ts";

/** One line of the closing table. A step that counts no tests counts as one failure when it fails, else as nothing. */
type StepResult = {
  readonly name: string;
  readonly seconds: number;
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
};
type Step = { readonly name: string; readonly run: () => Promise<Omit<StepResult, "name">> };

// Cheapest first: what fails most often is said soonest. The build comes before e2e, which runs built processes.
const STEPS: readonly Step[] = [
  check("format", ["npx", "oxfmt", "--check", "."]),
  check("lint", ["npx", "oxlint", "--deny-warnings", "--report-unused-disable-directives"]),
  check("boundaries", ["npx", "turbo", "boundaries", "--no-update-notifier"]),
  check("unused code", ["npx", "knip"]),
  check("types and build", ["npx", "tsc", "-b"]),
  check("generated pages", ["npx", "tsx", "--conditions=@keble-scraper/source", "scripts/check-generated.ts"]),
  check("migrations", ["npx", "tsx", "scripts/check-migrations.ts"]),
  check("documents", ["npx", "tsx", "scripts/check-documents.ts"]),
  check("mutants are current", ["npx", "tsx", "scripts/mutants.ts", "--check"]),
  ...TEST_LEVELS.map((level) => ({ name: level, run: () => runTests({ level, output: "inherit" }) })),
];

await main();

/** The gate: every step in order up to the first that fails, the seconds of each, and the sum as the last line. */
async function main(): Promise<void> {
  process.env["TURBO_TELEMETRY_DISABLED"] = "1";
  const results: StepResult[] = [];
  for (const step of STEPS) {
    console.log(`\n== ${step.name}`);
    const result = { name: step.name, ...(await step.run()) };
    results.push(result);
    console.log(`== ${step.name}: ${result.failed === 0 ? "ok" : "FAILED"} in ${result.seconds.toFixed(1)} s`);
    if (result.failed > 0) break;
  }
  printTable(results);
  const passed = sum(results, "passed");
  const failed = sum(results, "failed");
  console.log(`${passed} passed, ${failed} failed`);
  process.exitCode = failed === 0 ? 0 : 1;
}

function check(name: string, command: readonly string[]): Step {
  return {
    name,
    run: async () => {
      const { code, seconds } = await runCommand(command, { output: "inherit" });
      return { seconds, passed: 0, failed: code === 0 ? 0 : 1, skipped: 0 };
    },
  };
}

function printTable(results: readonly StepResult[]): void {
  const width = Math.max(...STEPS.map(({ name }) => name.length));
  console.log(`\n${"step".padEnd(width)}  seconds  passed  failed  skipped`);
  for (const { name, seconds, passed, failed, skipped } of results) {
    const cells = [seconds.toFixed(1).padStart(7), ...[passed, failed].map((count) => String(count).padStart(6))];
    console.log([name.padEnd(width), ...cells, String(skipped).padStart(7)].join("  "));
  }
  for (const { name } of STEPS.slice(results.length)) console.log(`${name.padEnd(width)}  not run`);
  console.log(`${"total".padEnd(width)}  ${sum(results, "seconds").toFixed(1).padStart(7)}`);
}

function sum(results: readonly StepResult[], column: "seconds" | "passed" | "failed"): number {
  return results.reduce((total, result) => total + result[column], 0);
}
