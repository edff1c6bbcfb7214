import { invalidRequest } from "../api-failure.ts";

/** The deepest nesting taken; the deepest body of the contract has four levels. */
const DEPTH_MAX = 32;

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * The value of JSON bytes. Throws INVALID_REQUEST for what is no UTF-8 or no JSON, for nesting over 32 levels (writing it
 * out again would overflow the stack), and for a field named `__proto__`, which parsers downstream pass over in silence.
 */
export function parseJson(bytes: Uint8Array): unknown {
  let value: unknown;
  try {
    value = JSON.parse(utf8.decode(bytes));
  } catch {
    throw invalidRequest("", "The body is not valid JSON.");
  }
  refuseOddShapes(value);
  return value;
}

function refuseOddShapes(root: unknown): void {
  let level = [root];
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEPTH_MAX) {
      throw invalidRequest("", `The body nests deeper than ${DEPTH_MAX} levels.`);
    }
    const next: unknown[] = [];
    for (const value of level) {
      if (typeof value === "object" && value !== null) {
        if (Object.hasOwn(value, "__proto__")) {
          throw invalidRequest("__proto__", "There is no such field.");
        }
        for (const child of Object.values(value)) {
          next.push(child);
        }
      }
    }
    level = next;
  }
}
