import type { SigningScope } from "./canonical-request.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf, type S3Request } from "./s3-request.ts";

/** What a request says about its own signature. Nothing of it is checked against the key yet; its times are. */
export type SignatureClaim = {
  readonly from: "HEADER" | "QUERY";
  readonly accessKeyId: string;
  readonly scope: SigningScope;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  /** Hex SHA-256 that the body must have, or a word such as UNSIGNED-PAYLOAD. */
  readonly payloadHash: string;
};

/** S3's own limit of a presigned URL's life: a week. */
export const PRESIGNED_SECONDS_MAX = 604_800;

/** How far a clock may be off: fifteen minutes, S3's own figure. */
const SKEW_MS_MAX = 15 * 60_000;

const ALGORITHM = "AWS4-HMAC-SHA256";

/** The claim of an Authorization header; refused when its time is not about now. */
export function readHeaderClaim(request: S3Request, authorization: string, nowMs: number): S3Result<SignatureClaim> {
  if (!authorization.startsWith(`${ALGORITHM} `)) {
    const message = `The authorization mechanism you have provided is not supported. Please use ${ALGORITHM}.`;
    return refuse("InvalidRequest", { message });
  }
  const fields = new Map(
    authorization
      .slice(ALGORITHM.length)
      .split(",")
      .map((part) => {
        const [name = "", ...value] = part.trim().split("=");
        return [name, value.join("=")] as const;
      }),
  );
  const credential = readCredential(fields.get("Credential") ?? "");
  const signedHeaders = fields.get("SignedHeaders")?.split(";") ?? [];
  const signature = fields.get("Signature") ?? "";
  if (credential === null || signedHeaders.length === 0 || signature === "")
    return refuse("AuthorizationHeaderMalformed");
  const date = request.headers.get("x-amz-date") ?? "";
  const signedAtMs = readDate(date);
  if (signedAtMs === null) {
    return refuse("AccessDenied", { message: "AWS authentication requires a valid Date or x-amz-date header" });
  }
  if (credential.day !== date.slice(0, 8)) {
    const message = "The date in the credential scope does not match the request's.";
    return refuse("AuthorizationHeaderMalformed", { message });
  }
  if (Math.abs(nowMs - signedAtMs) > SKEW_MS_MAX) {
    return refuse("RequestTimeTooSkewed", {
      details: {
        RequestTime: date,
        ServerTime: isoSeconds(nowMs),
        MaxAllowedSkewMilliseconds: String(SKEW_MS_MAX),
      },
    });
  }
  const payloadHash = request.headers.get("x-amz-content-sha256");
  if (payloadHash === undefined) {
    return refuse("InvalidRequest", { message: "Missing required header for this request: x-amz-content-sha256" });
  }
  if (!/^[0-9a-f]{64}$|^UNSIGNED-PAYLOAD$|^STREAMING-[A-Z0-9-]+$/.test(payloadHash)) {
    const message = "x-amz-content-sha256 must be UNSIGNED-PAYLOAD, STREAMING-… or a valid sha256 value.";
    return refuse("InvalidArgument", { message });
  }
  const scope = { date, region: credential.region, service: credential.service };
  return accept({ from: "HEADER", accessKeyId: credential.accessKeyId, scope, signedHeaders, signature, payloadHash });
}

/** The claim of a presigned URL; refused when it has expired, is of the future, or was to last longer than a week. */
export function readQueryClaim(request: S3Request, nowMs: number): S3Result<SignatureClaim> {
  const wrong = (message: string) => refuse("AuthorizationQueryParametersError", { message });
  if (parameterOf(request, "X-Amz-Algorithm") !== ALGORITHM) {
    return wrong(`X-Amz-Algorithm only supports "${ALGORITHM}"`);
  }
  const credential = readCredential(parameterOf(request, "X-Amz-Credential") ?? "");
  const signedHeaders = parameterOf(request, "X-Amz-SignedHeaders")?.split(";");
  const signature = parameterOf(request, "X-Amz-Signature");
  const date = parameterOf(request, "X-Amz-Date") ?? "";
  const expires = parameterOf(request, "X-Amz-Expires") ?? "";
  const signedAtMs = readDate(date);
  if (credential === null) return wrong("Error parsing the X-Amz-Credential parameter.");
  if (signedHeaders === undefined || signature === undefined || signedAtMs === null) {
    return wrong("Query-string authentication version 4 requires all of its X-Amz- parameters.");
  }
  if (!/^\d{1,9}$/.test(expires)) return wrong("X-Amz-Expires should be a number");
  if (Number(expires) > PRESIGNED_SECONDS_MAX) {
    return wrong(`X-Amz-Expires must be less than a week (in seconds); that is, at most ${PRESIGNED_SECONDS_MAX}.`);
  }
  if (credential.day !== date.slice(0, 8)) return wrong("The date in the credential scope does not match X-Amz-Date.");
  if (signedAtMs - nowMs > SKEW_MS_MAX) return refuse("AccessDenied", { message: "Request is not valid yet" });
  const endsAtMs = signedAtMs + Number(expires) * 1000;
  if (nowMs > endsAtMs) {
    return refuse("AccessDenied", {
      message: "Request has expired",
      details: { "X-Amz-Expires": expires, Expires: isoSeconds(endsAtMs), ServerTime: isoSeconds(nowMs) },
    });
  }
  const payloadHash =
    request.headers.get("x-amz-content-sha256") ?? parameterOf(request, "X-Amz-Content-Sha256") ?? "UNSIGNED-PAYLOAD";
  const scope = { date, region: credential.region, service: credential.service };
  return accept({ from: "QUERY", accessKeyId: credential.accessKeyId, scope, signedHeaders, signature, payloadHash });
}

function readCredential(text: string): {
  readonly accessKeyId: string;
  readonly day: string;
  readonly region: string;
  readonly service: string;
} | null {
  const [, accessKeyId, day, region, service] = /^(.+)\/(\d{8})\/([^/]+)\/([^/]+)\/aws4_request$/.exec(text) ?? [];
  if (accessKeyId === undefined || day === undefined || region === undefined || service === undefined) return null;
  return { accessKeyId, day, region, service };
}

function readDate(text: string): number | null {
  const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(text) ?? [];
  if (second === undefined) return null;
  const ms = Date.parse(`${year ?? ""}-${month ?? ""}-${day ?? ""}T${hour ?? ""}:${minute ?? ""}:${second}Z`);
  return Number.isNaN(ms) ? null : ms;
}

function isoSeconds(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
