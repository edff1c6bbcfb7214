import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, readlink, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "..", "..");
const run = promisify(execFile);

/** A copy of the working tree, tracked files and new ones, that shares the installed packages by symbolic links. */
export async function copyRepository(): Promise<{ readonly path: string; remove(): Promise<void> }> {
  const path = await mkdtemp(join(tmpdir(), "keble-mutants-"));
  const { stdout } = await run("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: ROOT,
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const file of stdout.split("\0").filter((name) => name !== "")) await copyFile(file, path);
  await linkPackages(path);
  await allowBrokenTypes(path);
  return { path, remove: () => rm(path, { recursive: true, force: true }) };
}

async function copyFile(file: string, path: string): Promise<void> {
  try {
    await mkdir(dirname(join(path, file)), { recursive: true });
    await cp(join(ROOT, file), join(path, file));
  } catch (error) {
    // Listed by git, but deleted in the working tree.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
}

/**
 * One link per package, and our own packages linked inside the copy: a link to the whole of `node_modules` would lead
 * every import of a workspace package back to the unmutated original.
 */
async function linkPackages(path: string): Promise<void> {
  const folders = ["", ...(await workspaceFolders())].map((folder) => join(folder, "node_modules"));
  for (const folder of folders) {
    const names = await readdir(join(ROOT, folder)).catch(() => []);
    if (names.length > 0) await mkdir(join(path, folder), { recursive: true });
    for (const name of names) {
      if (name === "@keble-scraper") await linkOwnPackages(join(folder, name), path);
      else if (!name.startsWith(".vite")) await symlink(join(ROOT, folder, name), join(path, folder, name));
    }
  }
}

async function linkOwnPackages(folder: string, path: string): Promise<void> {
  await mkdir(join(path, folder), { recursive: true });
  for (const name of await readdir(join(ROOT, folder))) {
    const target = join(ROOT, folder, await readlink(join(ROOT, folder, name)));
    await symlink(join(path, relative(ROOT, target)), join(path, folder, name));
  }
}

async function workspaceFolders(): Promise<string[]> {
  const { workspaces } = JSON.parse(await readFile(join(ROOT, "package.json"), "utf8")) as { workspaces: string[] };
  const folders = await Promise.all(
    workspaces.map(async (workspace) => {
      if (!workspace.endsWith("/*")) return [workspace];
      const parent = workspace.slice(0, -2);
      return (await readdir(join(ROOT, parent))).map((name) => join(parent, name));
    }),
  );
  const isFolder = async (folder: string): Promise<boolean> => (await stat(join(ROOT, folder))).isDirectory();
  const flat = folders.flat();
  const kept = await Promise.all(flat.map(isFolder));
  return flat.filter((_, index) => kept[index]);
}

/** A mutant that leaves a name unused must still be built, or its test would run the code of before. */
async function allowBrokenTypes(path: string): Promise<void> {
  const file = join(path, "tsconfig.base.json");
  const settings = await readFile(file, "utf8");
  await writeFile(file, settings.replace('"noEmitOnError": true', '"noEmitOnError": false'));
}
