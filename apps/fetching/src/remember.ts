/** Sets an entry and makes it the newest; past `sizeMax` entries the oldest is forgotten. */
export function remember<K, V>(entries: Map<K, V>, key: K, value: V, sizeMax: number): void {
  entries.delete(key);
  entries.set(key, value);
  if (entries.size <= sizeMax) return;
  for (const oldest of entries.keys()) {
    entries.delete(oldest);
    return;
  }
}
