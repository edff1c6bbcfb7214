/** Bytes `start` to `end`, both included. */
export type ReadRange = { readonly start: number; readonly end: number };

/** What a Range header asks of an object. Null: the whole of it; several ranges, or another unit, are ignored as S3 does. */
export function readRange(header: string | undefined, sizeBytes: number): ReadRange | "UNSATISFIABLE" | null {
  const [, from, to] = /^bytes=(\d*)-(\d*)$/.exec(header?.trim() ?? "") ?? [];
  if (from === undefined || to === undefined || (from === "" && to === "")) return null;
  if (from === "") {
    const length = Math.min(Number(to), sizeBytes);
    return length === 0 ? "UNSATISFIABLE" : { start: sizeBytes - length, end: sizeBytes - 1 };
  }
  if (to !== "" && Number(to) < Number(from)) return null;
  if (Number(from) >= sizeBytes) return "UNSATISFIABLE";
  return { start: Number(from), end: to === "" ? sizeBytes - 1 : Math.min(Number(to), sizeBytes - 1) };
}
