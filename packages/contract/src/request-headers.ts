import { z } from "zod";
import { REQUEST_HEADERS, type RequestHeader } from "./job-sets.ts";

const HeaderValue = z
  .string()
  .min(1)
  .max(4096)
  .regex(
    // Field content of RFC 9110, 5.5: no control characters, no blanks at either end.
    /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/,
    "Only printable characters up to U+00FF are allowed, without blanks at either end.",
  );

const HeaderRecord = z.record(z.string(), HeaderValue).superRefine((headers, context) => {
  const seen = new Set<string>();
  for (const name of Object.keys(headers)) {
    const lower = name.toLowerCase();
    if (!isRequestHeader(lower)) {
      context.addIssue({
        code: "custom",
        path: [name],
        message: `Only these are allowed: ${REQUEST_HEADERS.join(", ")}.`,
      });
    } else if (seen.has(lower)) {
      context.addIssue({ code: "custom", path: [name], message: "The header is given twice." });
    }
    seen.add(lower);
  }
});

/**
 * The headers a job adds to its requests: an allow-list, names in any case (lower-case once parsed), values 1 to 4,096
 * characters that can stand in a header line.
 */
export const RequestHeaders = HeaderRecord.meta({ propertyNames: { enum: REQUEST_HEADERS } }).transform(lowerCaseNames);
export type RequestHeaders = z.infer<typeof RequestHeaders>;

function isRequestHeader(name: string): name is RequestHeader {
  return REQUEST_HEADERS.some((allowed) => allowed === name);
}

function lowerCaseNames(headers: Record<string, string>): Partial<Record<RequestHeader, string>> {
  const result: Partial<Record<RequestHeader, string>> = {};
  for (const [name, value] of Object.entries(headers)) {
    const lower = name.toLowerCase();
    if (isRequestHeader(lower)) {
      result[lower] = value;
    }
  }
  return result;
}
