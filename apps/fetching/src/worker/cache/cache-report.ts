import type { CacheReport } from "@keble-scraper/db/commands/fetching";
import { type AnswerHeaders, isAnybodysAnswer } from "./answer-scope.ts";

/** What an answer of this key may become: `mayShare`, everybody's. */
export type CacheTerms = { readonly key: string; readonly mayShare: boolean };

const ETAG_CHARS_MAX = 1_024;
const ETAG = /^(?:W\/)?"[\x21\x23-\x7e\x80-\xff]*"$/;
/** The three forms of an HTTP date are all shorter. */
const DATE_CHARS_MAX = 64;

/** What a 2xx leaves in the cache. Validators that are long, doubled or malformed are as good as absent. */
export function toCacheReport({ key, mayShare }: CacheTerms, answer: AnswerHeaders): CacheReport {
  const isShared = mayShare && isAnybodysAnswer(answer);
  return {
    key,
    isShared,
    marksOwn: mayShare && !isShared,
    etag: readEtag(answer.headers["etag"]),
    lastModified: readDate(answer.headers["last-modified"]),
  };
}

function readEtag(value: string | readonly string[] | undefined): string | null {
  return typeof value === "string" && value.length <= ETAG_CHARS_MAX && ETAG.test(value) ? value : null;
}

function readDate(value: string | readonly string[] | undefined): string | null {
  if (typeof value !== "string" || value.length > DATE_CHARS_MAX || !/^[\x20-\x7e]+$/.test(value)) return null;
  return Number.isNaN(Date.parse(value)) ? null : value;
}
