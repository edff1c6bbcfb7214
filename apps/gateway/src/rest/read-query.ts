import { z } from "zod";
import { invalidRequest } from "../api-failure.ts";

type Kind = "integer" | "boolean" | "string";

/**
 * Reads query strings for `schema`: text becomes a number or a boolean where the schema wants one. What can't, and
 * unknown names, stay as sent for the schema to refuse; a name given twice is INVALID_REQUEST.
 */
export function createQueryReader(
  schema: z.ZodObject | undefined,
): (params: URLSearchParams) => Record<string, unknown> {
  const kinds = kindsOf(schema);
  return (params) => {
    const query: [string, unknown][] = [];
    const seen = new Set<string>();
    for (const [name, text] of params) {
      if (seen.has(name)) {
        throw invalidRequest(name, "The parameter is given twice.");
      }
      if (!kinds.has(name)) {
        throw invalidRequest(name, "There is no such parameter.");
      }
      seen.add(name);
      query.push([name, convert(text, kinds.get(name) ?? "string")]);
    }
    return Object.fromEntries(query);
  };
}

function kindsOf(schema: z.ZodObject | undefined): ReadonlyMap<string, Kind> {
  if (schema === undefined) {
    return new Map();
  }
  const { properties = {} } = z.toJSONSchema(schema, { io: "input" });
  return new Map(
    Object.entries(properties).map(([name, property]) => {
      const type = typeof property === "object" ? property.type : undefined;
      return [name, type === "integer" || type === "boolean" ? type : "string"];
    }),
  );
}

function convert(text: string, kind: Kind): unknown {
  if (kind === "integer" && /^\d{1,15}$/u.test(text)) {
    return Number(text);
  }
  if (kind === "boolean" && (text === "true" || text === "false")) {
    return text === "true";
  }
  return text;
}
