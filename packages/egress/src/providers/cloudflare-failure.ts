import type { UpstreamFailure } from "@keble-scraper/contract";
import { isObject, parseObject } from "../content/parse-object.ts";
import { readRetryAfterMs, readRetryAt } from "../transport/read-retry-after.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { CLOUDFLARE_CODES, CLOUDFLARE_QUOTA, isDailyQuota, rowOfCloudflareStatus } from "./cloudflare-codes.ts";
import { readToken, toProviderFailure } from "./provider-failure.ts";

/** What an envelope of Cloudflare's says besides its result. Lists are cut, and what is not of its type is absent. */
export type CloudflareEnvelope = {
  readonly isSuccess: boolean;
  readonly errors: readonly { readonly code: number; readonly message: string }[];
  readonly targetStatus: number | null;
  readonly finalUrl: string | null;
};

/** Reads an envelope's JSON, its result aside; null when it is none. */
export function readEnvelope(json: string): CloudflareEnvelope | null {
  const value = parseObject(json);
  if (value === null || typeof value["success"] !== "boolean") return null;
  const errors = Array.isArray(value["errors"]) ? value["errors"].slice(0, ERRORS_MAX) : [];
  const meta = isObject(value["meta"]) ? value["meta"] : {};
  const { status, url } = meta as { readonly status?: unknown; readonly url?: unknown };
  return {
    isSuccess: value["success"],
    errors: errors.flatMap((error: unknown) => {
      if (!isObject(error) || typeof error["code"] !== "number") return [];
      return [{ code: error["code"], message: typeof error["message"] === "string" ? error["message"] : "" }];
    }),
    targetStatus:
      typeof status === "number" && Number.isInteger(status) && status >= 100 && status <= 999 ? status : null,
    finalUrl: typeof url === "string" ? url : null,
  };
}

const ERRORS_MAX = 16;

/** The failure that an answer other than a success means; `envelope` null: its body is no envelope. */
export function toCloudflareFailure(
  head: ResponseHead,
  envelope: CloudflareEnvelope | null,
  wallMs: number,
): UpstreamFailure {
  const known = envelope?.errors.find(({ code }) => Object.hasOwn(CLOUDFLARE_CODES, code));
  const error = known ?? envelope?.errors[0];
  const found = known === undefined ? undefined : CLOUDFLARE_CODES[known.code];
  const row = found ?? rowOfCloudflareStatus(head.httpStatus);
  const isQuota =
    row.code === "PROVIDER_CAPACITY" &&
    head.httpStatus !== 503 &&
    isDailyQuota(error?.message ?? null, readRetryAfterMs(head, wallMs));
  return toProviderFailure(isQuota ? CLOUDFLARE_QUOTA : row, {
    nativeCode: error === undefined ? `HTTP_${head.httpStatus}` : String(error.code),
    requestId: cloudflareRequestId(head),
    httpStatus: head.httpStatus,
    retryAt: readRetryAt(head, wallMs),
  });
}

/** Cloudflare's id of a request. */
export function cloudflareRequestId(head: ResponseHead): string | null {
  return readToken(head.value("cf-ray"), 200);
}
