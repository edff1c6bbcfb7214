import { readFile } from "node:fs/promises";

/** Bytes of a page on every machine that has /proc and runs Chromium. */
const PAGE_BYTES = 4_096;

/**
 * Resident bytes of these processes together, pages that they share counted for each; null where there is no /proc. A
 * process that has ended counts nothing.
 */
export async function sumResidentBytes(pids: readonly number[]): Promise<number | null> {
  const sizes = await Promise.all(pids.map(residentBytes));
  const known = sizes.filter((size) => size !== null);
  return known.length === 0 ? null : known.reduce((sum, size) => sum + size, 0);
}

async function residentBytes(pid: number): Promise<number | null> {
  try {
    const [, resident = "0"] = (await readFile(`/proc/${pid}/statm`, "latin1")).split(" ");
    return Number(resident) * PAGE_BYTES;
  } catch {
    return null;
  }
}
