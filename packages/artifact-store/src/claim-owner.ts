/**
 * Puts an owner's mark by `put`, which never replaces one, then reads it twice. Both reads must agree: a store that
 * answers a claim with two owners is none that a claim can be trusted to.
 */
export async function claimOwner(mark: { put(): Promise<void>; read(): Promise<string | null> }): Promise<string> {
  if ((await mark.read()) === null) await mark.put();
  const [first, second] = [await mark.read(), await mark.read()];
  if (first === null || first !== second) throw new Error("the store does not hold on to the owner's mark");
  return first;
}
