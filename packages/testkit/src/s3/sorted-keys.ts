/** The order of keys in a listing: that of their UTF-8 bytes, which differs from that of UTF-16 units at surrogates. */
export function compareKeys(one: string, other: string): number {
  const length = Math.min(one.length, other.length);
  for (let i = 0; i < length; i += 1) {
    const difference = rank(one.charCodeAt(i)) - rank(other.charCodeAt(i));
    if (difference !== 0) return difference;
  }
  return one.length - other.length;
}

/** Where a key is in sorted keys, or would have to be. */
export function positionOf(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareKeys(keys[middle] ?? "", key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Puts a key that is not there yet in its place. */
export function insertSorted(keys: string[], key: string): void {
  keys.splice(positionOf(keys, key), 0, key);
}

/** Surrogates stand for code points above every other unit's. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x1_0000 : unit;
}
