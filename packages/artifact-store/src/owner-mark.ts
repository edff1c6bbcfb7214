/** Whose a prefix is: the owner that the settings name, and the random claim of the one database whose rows it holds. */
export type OwnerMark = { readonly owner: string; readonly claim: string };

/** The one name of the owner's mark below a prefix, in every backend: no key of an object looks like it. */
export const OWNER_NAME = "owner";
/** The most that a mark says, in bytes; what is longer was not written by this product. */
export const OWNER_BYTES_MAX = 4_096;

const OWNER = /^[A-Za-z0-9._/-]{1,128}$/u;
const CLAIM = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/u;

/** The mark's text: JSON in one spelling. Throws (a fault) on what `parseOwnerMark` would not read back. */
export function formatOwnerMark(mark: OwnerMark): string {
  if (!OWNER.test(mark.owner) || !CLAIM.test(mark.claim)) throw new Error("not an owner's mark");
  return JSON.stringify({ owner: mark.owner, claim: mark.claim });
}

/** What a mark says, or null for any text that `formatOwnerMark` has not made, character for character. */
export function parseOwnerMark(text: string): OwnerMark | null {
  if (text.length > OWNER_BYTES_MAX) return null;
  const parts = /^\{"owner":"([^"\\]{1,128})","claim":"([0-9a-f-]{36})"\}$/u.exec(text);
  const [owner, claim] = [parts?.[1], parts?.[2]];
  if (owner === undefined || claim === undefined) return null;
  return OWNER.test(owner) && CLAIM.test(claim) ? { owner, claim } : null;
}
