import type { ResponseHeaders } from "../transport/response-head.ts";
import { BLOCK_PATTERNS, BLOCK_SAMPLE_BYTES_MAX, type BlockPageName, type BlockPattern } from "./block-patterns.ts";

/** A page that a wall put in the place of the one that was asked for. `name` becomes the failure's `nativeCode`. */
export type BlockPage = { readonly name: BlockPageName };

/**
 * An answer as far as it is known. `sample`: the first decoded bytes, or all of them when the body is smaller; of more than
 * 64 KiB the rest is not looked at. `headers`: lower-case names.
 */
export type BlockSample = {
  readonly httpStatus: number;
  readonly headers: ResponseHeaders;
  readonly sample: Uint8Array;
};

const PATTERNS: readonly BlockPattern[] = BLOCK_PATTERNS;
const NAMES: readonly BlockPageName[] = BLOCK_PATTERNS.map(({ name }) => name);

/** By status, with their places in the list: most answers have a status that few or no walls use. */
const BY_STATUS = new Map<number, readonly number[]>();
for (const [index, { statuses }] of PATTERNS.entries()) {
  for (const status of statuses) BY_STATUS.set(status, [...(BY_STATUS.get(status) ?? []), index]);
}

/**
 * The wall's page that an answer is; null when it looks like none. Never by its status alone: see the list. A sample that
 * was cut counts as a body that is larger than it.
 */
export function detectBlockPage({ httpStatus, headers, sample }: BlockSample): BlockPage | null {
  let text: string | null = null;
  const isCut = sample.length >= BLOCK_SAMPLE_BYTES_MAX;
  for (const index of BY_STATUS.get(httpStatus) ?? []) {
    const pattern = PATTERNS[index];
    const name = NAMES[index];
    if (pattern === undefined || name === undefined || !matchesHeaders(pattern, headers)) continue;
    if (pattern.body === undefined) return { name };
    if (pattern.bytesMax !== undefined && (isCut || sample.length > pattern.bytesMax)) continue;
    text ??= toLatin1(sample);
    const searched = text;
    if (pattern.body.every((marker) => marker.test(searched))) return { name };
  }
  return null;
}

/** What the head alone gives away; null when it takes a body to tell. */
export function detectBlockHead(httpStatus: number, headers: ResponseHeaders): BlockPage | null {
  return detectBlockPage({ httpStatus, headers, sample: new Uint8Array() });
}

/**
 * How many bytes of an HTML body have to be seen before it is known to be no wall's page; 0 when its status says so already.
 * A page that is larger than this is none.
 */
export function blockScreenBytes(httpStatus: number): number {
  const patterns = (BY_STATUS.get(httpStatus) ?? []).map((index) => PATTERNS[index]);
  const sizes = patterns.map((pattern) =>
    pattern?.body === undefined ? 0 : (pattern.bytesMax ?? BLOCK_SAMPLE_BYTES_MAX),
  );
  return Math.max(0, ...sizes);
}

function matchesHeaders({ headers: wanted }: BlockPattern, headers: ResponseHeaders): boolean {
  if (wanted === undefined) return true;
  return Object.entries(wanted).every(([name, pattern]) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
    return value !== undefined && pattern.test(typeof value === "string" ? value : value.join(", "));
  });
}

function toLatin1(sample: Uint8Array): string {
  return Buffer.from(sample.buffer, sample.byteOffset, Math.min(sample.length, BLOCK_SAMPLE_BYTES_MAX)).toString(
    "latin1",
  );
}
