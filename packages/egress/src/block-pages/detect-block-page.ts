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

type Named = BlockPattern & { readonly name: BlockPageName };

/** Found by status, since most answers have one that few or no walls use; what a head alone gives away, and what it does not. */
type ForStatus = { readonly byHead: readonly Named[]; readonly byBody: readonly Named[] };
const PATTERNS: readonly Named[] = BLOCK_PATTERNS;
const NONE: ForStatus = { byHead: [], byBody: [] };
const BY_STATUS = new Map<number, ForStatus>();
for (const status of new Set(PATTERNS.flatMap(({ statuses }) => statuses))) {
  const patterns = PATTERNS.filter(({ statuses }) => statuses.includes(status));
  BY_STATUS.set(status, {
    byHead: patterns.filter(({ body }) => body === undefined),
    byBody: patterns.filter(({ body }) => body !== undefined),
  });
}

/**
 * The wall's page that an answer is; null when it looks like none. Never by its status alone: see the list. A sample of 64
 * KiB counts as a body that is larger than it.
 */
export function detectBlockPage({ httpStatus, headers, sample }: BlockSample): BlockPage | null {
  return detectBlockHead(httpStatus, headers) ?? detectBlockBody({ httpStatus, headers, sample });
}

/** What the head alone gives away; null when it takes a body to tell. */
export function detectBlockHead(httpStatus: number, headers: ResponseHeaders): BlockPage | null {
  const { byHead } = BY_STATUS.get(httpStatus) ?? NONE;
  for (const pattern of byHead) if (matchesHeaders(pattern, headers)) return { name: pattern.name };
  return null;
}

/** What it takes the body to tell; null when that is no wall's, either. */
export function detectBlockBody({ httpStatus, headers, sample }: BlockSample): BlockPage | null {
  const { byBody } = BY_STATUS.get(httpStatus) ?? NONE;
  const isCut = sample.length >= BLOCK_SAMPLE_BYTES_MAX;
  const bytes = Buffer.from(sample.buffer, sample.byteOffset, Math.min(sample.length, BLOCK_SAMPLE_BYTES_MAX));
  let text: string | null = null;
  for (const pattern of byBody) {
    if (pattern.bytesMax !== undefined && (isCut || sample.length > pattern.bytesMax)) continue;
    if (!matchesHeaders(pattern, headers) || !hasNeedle(pattern, bytes)) continue;
    text ??= bytes.toString("latin1");
    if (hasMarkers(pattern, text)) return { name: pattern.name };
  }
  return null;
}

function hasNeedle({ needles }: BlockPattern, bytes: Buffer): boolean {
  if (needles === undefined) return true;
  for (const needle of needles) if (bytes.includes(needle, 0, "latin1")) return true;
  return false;
}

function hasMarkers({ body = [], lacks = [] }: BlockPattern, text: string): boolean {
  for (const marker of body) if (!marker.test(text)) return false;
  for (const marker of lacks) if (marker.test(text)) return false;
  return true;
}

/**
 * What has to be seen of a body before it is known to be no wall's page. `bytes`: 0 when its status says so already.
 * `isLargeOther`: a body that is larger than that is none, whatever it says.
 */
export function blockScreen(httpStatus: number): { readonly bytes: number; readonly isLargeOther: boolean } {
  const { byBody } = BY_STATUS.get(httpStatus) ?? NONE;
  let bytes = 0;
  let isLargeOther = true;
  for (const { bytesMax } of byBody) {
    bytes = Math.max(bytes, bytesMax ?? BLOCK_SAMPLE_BYTES_MAX);
    isLargeOther &&= bytesMax !== undefined;
  }
  return { bytes, isLargeOther };
}

function matchesHeaders({ headers: wanted }: BlockPattern, headers: ResponseHeaders): boolean {
  if (wanted === undefined) return true;
  return Object.entries(wanted).every(([name, pattern]) => {
    const value = Object.hasOwn(headers, name) ? headers[name] : undefined;
    return value !== undefined && pattern.test(typeof value === "string" ? value : value.join(", "));
  });
}
