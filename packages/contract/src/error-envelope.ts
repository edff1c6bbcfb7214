import { z } from "zod";
import { LocalFailure, UpstreamFailure } from "./failure.ts";

/** The most details one error carries. */
export const DETAILS_MAX = 50;
const PATH_CHARACTERS_MAX = 200;
const MESSAGE_CHARACTERS_MAX = 500;

/** One thing that is wrong with a request. `path` names a field (`target.headers.cookie`, `routes.0`); empty: the whole. */
export const ErrorDetail = z.strictObject({
  path: z.string().max(PATH_CHARACTERS_MAX),
  message: z.string().max(MESSAGE_CHARACTERS_MAX),
});
export type ErrorDetail = z.infer<typeof ErrorDetail>;

const details = z.array(ErrorDetail).max(DETAILS_MAX).optional();
const requestId = z.string().max(128);

/** A failure as services answer it: the family, with what is wrong in detail. */
export const DetailedFailure = z.discriminatedUnion("kind", [
  LocalFailure.extend({ details }),
  UpstreamFailure.extend({ details }),
]);
export type DetailedFailure = z.infer<typeof DetailedFailure>;

/** A failure as callers see it: the family, the request it belongs to, and details. */
export const ErrorBody = z.discriminatedUnion("kind", [
  LocalFailure.extend({ requestId, details }),
  UpstreamFailure.extend({ requestId, details }),
]);
export type ErrorBody = z.infer<typeof ErrorBody>;

/** The one envelope of every error on both faces. */
export const ErrorEnvelope = z.strictObject({ error: ErrorBody });
export type ErrorEnvelope = z.infer<typeof ErrorEnvelope>;

/** The envelope of a failure. Details are cut to 50; none leaves the field out. */
export function toErrorEnvelope(
  failure: DetailedFailure,
  context: { readonly requestId: string; readonly details?: readonly ErrorDetail[] | undefined },
): ErrorEnvelope {
  const { details: own, ...rest } = failure;
  const all = [...(context.details ?? own ?? [])].slice(0, DETAILS_MAX);
  const error = { ...rest, requestId: context.requestId };
  return { error: all.length === 0 ? error : { ...error, details: all } };
}

/** What zod found wrong, one detail per field (an unknown field is named by its own path), at most 50, cut to their bounds. */
export function zodDetails(error: z.core.$ZodError): ErrorDetail[] {
  return error.issues.flatMap((issue) => issueDetails(issue)).slice(0, DETAILS_MAX);
}

function issueDetails(issue: z.core.$ZodIssue): ErrorDetail[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, DETAILS_MAX).map((key) => toDetail([...issue.path, key], "There is no such field."));
  }
  if (issue.code === "invalid_key") {
    return [toDetail(issue.path, issue.issues[0]?.message ?? issue.message)];
  }
  return [toDetail(issue.path, issue.message)];
}

function toDetail(path: readonly PropertyKey[], message: string): ErrorDetail {
  return {
    path: path.map(String).join(".").slice(0, PATH_CHARACTERS_MAX),
    message: message.slice(0, MESSAGE_CHARACTERS_MAX),
  };
}
