import { execFile } from "node:child_process";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { promisify } from "node:util";

const DB = join(import.meta.dirname, "..", "db");
const run = promisify(execFile);

await main();

/** Fails when the built schema would make a migration that is not there. Works on a copy; writes nothing in the tree. */
async function main(): Promise<void> {
  const out = await mkdtemp(join(tmpdir(), "keble-migrations-"));
  try {
    await cp(join(DB, "migrations"), out, { recursive: true });
    // drizzle-kit reads `out` from its own folder, also when it is absolute.
    const flags = ["--dialect", "postgresql", "--schema", "./dist/schema/index.js", "--out", relative(DB, out)];
    const { stdout, stderr } = await run("npx", ["drizzle-kit", "generate", ...flags], { cwd: DB });
    // Its exit code is 0 whatever happened, also when it would ask whether a column was renamed.
    if (stdout.includes("No schema changes")) return console.log("the migrations make the schema");
    console.error(stdout, stderr);
    console.error("db/src/schema and db/migrations differ: run `npm run generate:migration -- --name what_it_does`");
    process.exitCode = 1;
  } finally {
    await rm(out, { recursive: true, force: true });
  }
}
