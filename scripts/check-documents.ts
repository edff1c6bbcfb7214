import { execFile } from "node:child_process";
import { access, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "..");
const run = promisify(execFile);

/** `[text](target)`, but no URL, no anchor alone and no mail address. */
const LINK = /\]\((?!https?:|#|mailto:)(?<target>[^)\s#]+)/g;
/** How ARCHITECTURE.md introduces an invariant: a list item that starts with its bold number. */
const INVARIANT = /^- \*\*(?<number>[A-Z]\d+)\*\*/gm;
/** How a test says which invariant it holds: the number starts its name or a group's. */
const NAMED_TEST = /["'`](?<number>[A-Z]\d+)[ :]/g;

await main();

/** Fails when a page links to nothing, a package has no README, or an invariant that we claim has no test. */
async function main(): Promise<void> {
  const files = await listFiles();
  const complaints = [
    ...(await brokenLinks(files.filter((file) => file.endsWith(".md")))),
    ...missingReadmes(files),
    ...(await unheldInvariants(files)),
  ];
  for (const complaint of complaints) console.error(complaint);
  if (complaints.length > 0) process.exitCode = 1;
  else console.log("documents are consistent");
}

async function listFiles(): Promise<string[]> {
  const { stdout } = await run("git", ["ls-files", "--cached", "--others", "--exclude-standard"], { cwd: ROOT });
  return stdout.split("\n").filter((file) => file !== "");
}

async function brokenLinks(pages: readonly string[]): Promise<string[]> {
  const broken: string[] = [];
  for (const page of pages) {
    const text = await readFile(join(ROOT, page), "utf8");
    for (const { groups } of text.matchAll(LINK)) {
      const target = groups?.["target"] ?? "";
      const exists = await access(join(ROOT, dirname(page), target)).then(
        () => true,
        () => false,
      );
      if (!exists) broken.push(`${page}: links to ${target}, which is not there`);
    }
  }
  return broken;
}

function missingReadmes(files: readonly string[]): string[] {
  const folders = files
    .filter((file) => /^(?:(?:apps|packages)\/[^/]+|db|e2e)\/package\.json$/.test(file))
    .map(dirname);
  return folders
    .filter((folder) => !files.includes(`${folder}/README.md`))
    .map((folder) => `${folder}: has no README.md`);
}

async function unheldInvariants(files: readonly string[]): Promise<string[]> {
  const page = await readFile(join(ROOT, "ARCHITECTURE.md"), "utf8");
  const claimed = [...page.matchAll(INVARIANT)].map(({ groups }) => groups?.["number"] ?? "");
  const held = new Set<string>();
  for (const file of files.filter((name) => name.endsWith(".test.ts"))) {
    const text = await readFile(join(ROOT, file), "utf8");
    for (const { groups } of text.matchAll(NAMED_TEST)) held.add(groups?.["number"] ?? "");
  }
  return claimed
    .filter((number) => !held.has(number))
    .map((number) => `ARCHITECTURE.md: ${number} is claimed, but no test is named after it`);
}
