import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Mutant } from "./read-mutants.ts";

/** Applies a mutant to the copy in `root`; `restore`, or the end of an `await using`, puts the file back. */
export async function mutateFile(
  root: string,
  { file, find, replace }: Mutant,
): Promise<AsyncDisposable & { restore(): Promise<void> }> {
  const path = join(root, file);
  const original = await readFile(path, "utf8");
  // A function, because `$&` in a replacement text would be expanded.
  await writeFile(
    path,
    original.replace(find, () => replace),
  );
  const restore = (): Promise<void> => writeFile(path, original);
  return { restore, [Symbol.asyncDispose]: restore };
}
