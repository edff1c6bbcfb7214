import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { renderSettingsPage } from "@keble-scraper/service";
import { buildOpenApi } from "../apps/gateway/src/openapi.ts";
import { renderFailuresPage } from "./failures-page.ts";
import { renderStatesPage } from "./states-page.ts";

const ROOT = join(import.meta.dirname, "..");

/** Every file that is written by code: what it is and what it must contain. */
const GENERATED: readonly { readonly path: string; readonly render: () => string | Promise<string> }[] = [
  { path: "infra/docs/settings.gen.md", render: renderSettingsPage },
  { path: "infra/docs/failures.gen.md", render: renderFailuresPage },
  { path: "infra/docs/states.gen.md", render: renderStatesPage },
  { path: "infra/docs/openapi.gen.json", render: () => JSON.stringify(buildOpenApi(), null, 2) },
];

await main(process.argv.includes("--write"));

/** Compares every generated file with what the code says now, or writes them anew; a stale one fails the gate. */
async function main(write: boolean): Promise<void> {
  const stale: string[] = [];
  for (const { path, render } of GENERATED) {
    const file = join(ROOT, path);
    const wanted = `${(await render()).trimEnd()}\n`;
    if ((await readOrEmpty(file)) === wanted) continue;
    stale.push(path);
    if (write) {
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, wanted);
    }
  }
  for (const path of stale) console.log(write ? `${path}: written` : `${path}: stale, run \`npm run generate\``);
  if (stale.length === 0) console.log(`${GENERATED.length} generated files are current`);
  if (!write && stale.length > 0) process.exitCode = 1;
}

async function readOrEmpty(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return "";
    throw error;
  }
}
