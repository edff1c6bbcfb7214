import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** One line of code that holds a guarantee, what breaks it, and the test that must notice. Paths are from the root. */
export type Mutant = {
  readonly invariant: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly test: string;
  /** Text of the test's name; of an `it.each` name, the part without placeholders. */
  readonly name: string;
  /** Set when the test runs built processes although it is not e2e. */
  readonly build?: boolean;
};

const ROOT = join(import.meta.dirname, "..", "..");
const FIELDS = ["invariant", "file", "find", "replace", "test", "name"] as const;

/** The mutants of `mutants.json`. Throws with every complaint at once when one no longer fits the tree. */
export async function readMutants(): Promise<readonly Mutant[]> {
  const mutants = JSON.parse(await readFile(join(ROOT, "mutants.json"), "utf8")) as readonly Mutant[];
  const complaints: string[] = [];
  for (const [index, mutant] of mutants.entries()) {
    const missing = FIELDS.filter((field) => typeof mutant[field] !== "string");
    const found = missing.length > 0 ? [`lacks ${missing.join(", ")}`] : await complaintsAbout(mutant);
    complaints.push(...found.map((complaint) => `mutants.json[${index}] ${mutant.invariant}: ${complaint}`));
  }
  if (complaints.length > 0) throw new Error(`mutants.json is stale:\n${complaints.join("\n")}`);
  return mutants;
}

async function complaintsAbout({ file, find, replace, test, name }: Mutant): Promise<string[]> {
  const complaints: string[] = [];
  const source = await readOrNull(file);
  if (source === null) complaints.push(`there is no ${file}`);
  else {
    const times = find === "" ? 0 : source.split(find).length - 1;
    if (times !== 1) complaints.push(`\`find\` occurs ${times} times in ${file}: ${find}`);
  }
  if (find === replace) complaints.push("`replace` changes nothing");
  const tests = await readWithSuites(test);
  if (tests === null) complaints.push(`there is no ${test}`);
  else if (!isNamed(tests, name)) complaints.push(`${test} has no test named: ${name}`);
  return complaints;
}

/** Vitest's full name is the titles of the groups and of the test, so the text may span them; else it is in the source. */
function isNamed(source: string, name: string): boolean {
  const flat = source.replaceAll(/\\(["'`])/g, "$1");
  if (flat.includes(name) || templatesOf(flat).some((template) => template.test(name))) return true;
  const words = name.split(" ");
  return words.some((_, at) => {
    const [group, test] = [words.slice(0, at).join(" "), words.slice(at).join(" ")];
    return at > 0 && flat.includes(group) && flat.includes(test);
  });
}

/** The names of `test.each`, with anything in place of their placeholders. */
function templatesOf(source: string): RegExp[] {
  const titles = source.matchAll(/"((?:[^"\n]*(?:%[sidjo]|\$\w+))+[^"\n]*)"/g);
  return Array.from(titles, ([, title = ""]) => {
    const parts = title.split(/%[sidjo]|\$\w+/).map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`));
    return new RegExp(parts.join(".*"));
  });
}

/** A test file with the suites it shares with others: its relative imports. */
async function readWithSuites(path: string): Promise<string | null> {
  const source = await readOrNull(path);
  if (source === null) return null;
  const imports = Array.from(source.matchAll(/from "(\.\/[^"]+)"/g), ([, file = ""]) => join(dirname(path), file));
  return [source, ...(await Promise.all(imports.map(readOrNull)))].join("\n");
}

async function readOrNull(path: string): Promise<string | null> {
  try {
    return await readFile(join(ROOT, path), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
