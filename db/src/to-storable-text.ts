import type postgres from "postgres";

/**
 * Text that Postgres can store in text and jsonb: NUL and lone surrogates become U+FFFD. One such character in one row
 * was seen to fail a whole group of settles (22P05), so everything that came from outside passes here.
 */
export function toStorableText(text: string): string {
  return text.replaceAll(/\p{Surrogate}|\0/gu, "\uFFFD");
}

/** The same for every string inside a JSON value, keys included. Pass only what is JSON: no functions, no bigints. */
export function toStorableJson(value: unknown): postgres.JSONValue {
  return clean(value) as postgres.JSONValue;
}

function clean(value: unknown): unknown {
  if (typeof value === "string") return toStorableText(value);
  if (Array.isArray(value)) return value.map(clean);
  if (value instanceof Date || value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, entry]) => [toStorableText(key), clean(entry)]));
}
