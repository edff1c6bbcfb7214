import { canonicalRequest, signText, stringToSign } from "./canonical-request.ts";
import { accept, refuse, type S3Result } from "./s3-refusal.ts";
import { parameterOf, type S3Request } from "./s3-request.ts";
import { readHeaderClaim, readQueryClaim, type SignatureClaim } from "./signature-claim.ts";

/** The one key of a server. */
export type S3Key = { readonly accessKeyId: string; readonly secretAccessKey: string; readonly region: string };

/** What a request that was signed right is bound to. */
export type VerifiedSignature = Pick<SignatureClaim, "from" | "payloadHash">;

/** Checks who signed a request, when, and that nothing it covers has changed. `nowMs` is the server's clock. */
export function verifySignature(request: S3Request, key: S3Key, nowMs: number): S3Result<VerifiedSignature> {
  const authorization = request.headers.get("authorization");
  const presigned = parameterOf(request, "X-Amz-Algorithm") !== undefined;
  if (authorization !== undefined && presigned) {
    return refuse("InvalidArgument", { message: "Only one auth mechanism allowed." });
  }
  if (authorization === undefined && !presigned) return refuse("AccessDenied");
  const claim = presigned ? readQueryClaim(request, nowMs) : readHeaderClaim(request, authorization ?? "", nowMs);
  if (!claim.ok) return claim;
  return checkClaim(request, claim.value, key);
}

function checkClaim(request: S3Request, claim: SignatureClaim, key: S3Key): S3Result<VerifiedSignature> {
  const { accessKeyId, scope, signedHeaders, from, payloadHash } = claim;
  const malformed = from === "QUERY" ? "AuthorizationQueryParametersError" : "AuthorizationHeaderMalformed";
  if (accessKeyId !== key.accessKeyId) {
    return refuse("InvalidAccessKeyId", { details: { AWSAccessKeyId: accessKeyId } });
  }
  if (scope.region !== key.region) {
    const message = `The region '${scope.region}' is wrong; expecting '${key.region}'.`;
    return refuse(malformed, { message, details: { Region: key.region } });
  }
  if (scope.service !== "s3") return refuse(malformed, { message: `The service '${scope.service}' is wrong.` });
  const unsigned = unsignedHeaders(request, signedHeaders);
  if (unsigned.length > 0) {
    return refuse("AccessDenied", {
      message: "There were headers present in the request which were not signed",
      details: { HeadersNotSigned: unsigned.join(", ") },
    });
  }
  const canonical = canonicalRequest({
    method: request.method,
    path: request.path,
    query: request.query.filter(([name]) => from === "HEADER" || name !== "X-Amz-Signature"),
    headers: signedHeaders.map((name) => [name, request.headers.get(name) ?? ""] as const),
    payloadHash,
  });
  const text = stringToSign(canonical, scope);
  if (signText(text, key.secretAccessKey, scope) !== claim.signature) {
    return refuse("SignatureDoesNotMatch", {
      details: {
        AWSAccessKeyId: accessKeyId,
        StringToSign: text,
        SignatureProvided: claim.signature,
        CanonicalRequest: canonical,
      },
    });
  }
  return accept({ from, payloadHash });
}

/** S3 wants the host and every `x-amz-` header that is sent to be signed. */
function unsignedHeaders(request: S3Request, signed: readonly string[]): string[] {
  return ["host", ...request.headers.keys()].filter(
    (name, index) => (index === 0 || name.startsWith("x-amz-")) && !signed.includes(name),
  );
}
