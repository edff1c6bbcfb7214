import { copyRepository } from "./mutants/copy-repository.ts";
import { mutateFile } from "./mutants/mutate-file.ts";
import { type Mutant, readMutants } from "./mutants/read-mutants.ts";
import { levelOf, testKey } from "./mutants/test-of-mutant.ts";
import { runCommand } from "./run-command.ts";
import { runTests } from "./run-tests.ts";

const USAGE = `Usage: npm run test:mutants [-- options]
  --only NAME   only mutants of this invariant (J2) or whose file or test name contains NAME; may be repeated
  --check       only validate mutants.json against the tree: every find once, every test present
  --keep        leave the working copy in place and say where it is`;

/** For one run of one test: a mutant may well make a test hang, and that kills it. e2e starts the whole product. */
const RUN_TIMEOUT_MS = { unit: 60_000, integration: 120_000, fault: 180_000, e2e: 300_000 } as const;
const BUILD_TIMEOUT_MS = 180_000;

type Verdict = "killed" | "SURVIVED" | "BROKEN";

/** By test: what is wrong with it unmutated, null when it passes. */
const baselines = new Map<string, string | null>();

await main(process.argv.slice(2));

/**
 * Breaks the line that holds each guarantee and runs the test that is said to notice. Exit code 1 when a mutant
 * survives, when its test does not pass unmutated, or when the mutated file cannot be loaded at all.
 */
async function main(args: readonly string[]): Promise<void> {
  if (args.includes("--help")) return console.log(USAGE);
  const mutants = await readMutants();
  if (args.includes("--check")) return console.log(`${mutants.length} mutants are current`);

  const chosen = mutants.filter((mutant) => isChosen(mutant, args));
  const copy = await copyRepository();
  const survivors: string[] = [];
  try {
    await buildIfNeeded(chosen, copy.path);
    for (const [index, mutant] of chosen.entries()) {
      const started = performance.now();
      const { verdict, why } = await judge(mutant, copy.path);
      const seconds = ((performance.now() - started) / 1_000).toFixed(1);
      const line = `${verdict.padEnd(8)} ${mutant.invariant.padEnd(4)} ${mutant.file} (${why}, ${seconds} s)`;
      console.log(`[${index + 1}/${chosen.length}] ${line}`);
      if (verdict !== "killed") survivors.push(`${line}\n         ${mutant.name}\n         - ${mutant.find}`);
    }
  } finally {
    if (args.includes("--keep")) console.log(`The copy is in ${copy.path}`);
    else await copy.remove();
  }
  if (survivors.length > 0) console.log(`\nNot killed:\n${survivors.join("\n")}`);
  console.log(`\n${chosen.length - survivors.length} killed, ${survivors.length} not, of ${chosen.length} mutants`);
  process.exitCode = survivors.length === 0 ? 0 : 1;
}

function isChosen(mutant: Mutant, args: readonly string[]): boolean {
  const wanted = args.filter((_, index) => args[index - 1] === "--only");
  if (wanted.length === 0) return true;
  return wanted.some(
    (name) =>
      mutant.invariant === name || mutant.file.includes(name) || (name.length > 3 && mutant.name.includes(name)),
  );
}

async function judge(mutant: Mutant, cwd: string): Promise<{ verdict: Verdict; why: string }> {
  const key = testKey(mutant);
  const known = baselines.get(key);
  const complaint = known === undefined ? await findBaselineComplaint(mutant, cwd) : known;
  baselines.set(key, complaint);
  if (complaint !== null) return { verdict: "BROKEN", why: complaint };

  await using mutation = await mutateFile(cwd, mutant);
  if (needsBuild(mutant)) await build(cwd);
  const run = await runOne(mutant, cwd);
  const verdict = verdictOf(run);
  await mutation.restore();
  if (needsBuild(mutant)) await build(cwd);
  return verdict;
}

/** Null when the unmutated test passes; what is wrong otherwise. */
async function findBaselineComplaint(mutant: Mutant, cwd: string): Promise<string | null> {
  const run = await runOne(mutant, cwd);
  if (run.timedOut) return "the test hangs unmutated";
  if (run.failed > 0) return "the test fails unmutated";
  return run.passed === 0 ? "no test of that name ran" : null;
}

function verdictOf(run: Awaited<ReturnType<typeof runOne>>): { verdict: Verdict; why: string } {
  if (run.timedOut) return { verdict: "killed", why: "the test hung" };
  if (run.brokenFiles > 0) return { verdict: "BROKEN", why: "the mutated code does not load" };
  if (run.failed > 0) return { verdict: "killed", why: "the test failed" };
  return { verdict: "SURVIVED", why: "the test still passes" };
}

function runOne(mutant: Mutant, cwd: string) {
  const { test, name } = mutant;
  const level = levelOf(test);
  return runTests({ level, file: test, name, cwd, output: "ignore", timeoutMs: RUN_TIMEOUT_MS[level] });
}

/** Tests that start our own binary run what was built. */
function needsBuild(mutant: Mutant): boolean {
  return mutant.build === true || levelOf(mutant.test) === "e2e";
}

async function buildIfNeeded(mutants: readonly Mutant[], cwd: string): Promise<void> {
  if (mutants.some(needsBuild)) await build(cwd);
}

async function build(cwd: string): Promise<void> {
  // A mutant may leave a name unused or a type wrong and must be emitted all the same; the copy's settings allow it.
  await runCommand(["npx", "tsc", "-b", "tsconfig.build.json"], { cwd, output: "ignore", timeoutMs: BUILD_TIMEOUT_MS });
}
