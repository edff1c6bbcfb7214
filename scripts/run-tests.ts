import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CommandResult, runCommand } from "./run-command.ts";

/** The levels of test, each a vitest project. */
export const TEST_LEVELS = ["unit", "integration", "fault", "e2e"] as const;
export type TestLevel = (typeof TEST_LEVELS)[number];

/** What a run counted. `failed` is at least 1 when the run did not succeed, also when no test got to say so. */
export type TestRun = CommandResult & {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
  /** Test files that could not be loaded or collected; their tests are in no other count. */
  readonly brokenFiles: number;
};

type TestRunOptions = {
  readonly level: TestLevel;
  readonly output: "inherit" | "ignore";
  readonly cwd?: string;
  readonly file?: string;
  /** Only tests whose full name contains this text. */
  readonly name?: string;
  readonly timeoutMs?: number;
};

type Report = {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly numTodoTests: number;
  readonly testResults: readonly { readonly status: string; readonly assertionResults: readonly unknown[] }[];
};

/** Runs one level, or one file of it, and counts from vitest's own report. */
export async function runTests(options: TestRunOptions): Promise<TestRun> {
  const directory = await mkdtemp(join(tmpdir(), "keble-test-report-"));
  const reportFile = join(directory, "report.json");
  try {
    const command = ["npx", "vitest", "run", "--project", options.level];
    if (options.file !== undefined) command.push(options.file);
    if (options.name !== undefined) command.push("-t", escapeRegExp(options.name));
    command.push("--reporter=default", "--reporter=json", `--outputFile.json=${reportFile}`);
    const result = await runCommand(command, {
      output: options.output,
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    });
    const report = await readReport(reportFile);
    const failed = report?.numFailedTests ?? 0;
    return {
      ...result,
      passed: report?.numPassedTests ?? 0,
      failed: result.code === 0 ? failed : Math.max(1, failed),
      skipped: (report?.numPendingTests ?? 0) + (report?.numTodoTests ?? 0),
      brokenFiles:
        report?.testResults.filter((file) => file.status === "failed" && file.assertionResults.length === 0).length ??
        0,
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

async function readReport(file: string): Promise<Report | null> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as Report;
  } catch {
    // No report: vitest was killed or failed before it could write one. The exit code tells the rest.
    return null;
  }
}

function escapeRegExp(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`);
}
