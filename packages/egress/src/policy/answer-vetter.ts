import { LRUCache } from "lru-cache";
import type { AddressPolicy } from "./classify-address.ts";
import type { Reach } from "./reach.ts";
import { vetAddresses, type VetAddressesResult } from "./vet-addresses.ts";

/** Answers remembered, and the longest that are. */
const ANSWERS_MAX = 1_024;
const ANSWER_CHARS_MAX = 512;

/**
 * `vetAddresses` under one policy. What it says of equal answers is remembered, which changes nothing about it: it depends on
 * the addresses, the policy and the reach alone, and each use of an answer is judged by its own URL's reach.
 */
export function createAnswerVetter(
  policy: AddressPolicy,
): (answers: readonly string[], reach: Reach) => VetAddressesResult {
  const known = new LRUCache<string, VetAddressesResult>({ max: ANSWERS_MAX });
  return (answers, reach) => {
    const key = `${reach} ${JSON.stringify(answers)}`;
    const before = known.get(key);
    if (before !== undefined) return before;
    const result = vetAddresses(answers, { ...policy, reach });
    if (key.length <= ANSWER_CHARS_MAX) known.set(key, result);
    return result;
  };
}
