/** The server's own vocabulary of errors: what each code's status and text are. Codes and statuses are S3's and OSS'. */
const REFUSALS = {
  AccessDenied: [403, "Access Denied"],
  AuthorizationHeaderMalformed: [400, "The authorization header that you provided is not valid."],
  AuthorizationQueryParametersError: [400, "Error parsing the X-Amz-Credential parameter."],
  BadDigest: [400, "The checksum you specified did not match what we received."],
  ConditionalRequestConflict: [409, "A conflicting operation occurred during the conditional request."],
  EntityTooLarge: [400, "Your proposed upload exceeds the maximum allowed object size."],
  EntityTooSmall: [400, "Your proposed upload is smaller than the minimum allowed size."],
  FileAlreadyExists: [409, "The object you specified already exists and can not be overwritten."],
  InvalidAccessKeyId: [403, "The access key id you provided does not exist in our records."],
  InvalidArgument: [400, "Invalid argument."],
  InvalidDigest: [400, "The digest you specified is not valid."],
  InvalidPart: [400, "A part could not be found, or its entity tag did not match."],
  InvalidPartOrder: [400, "The list of parts was not in ascending order."],
  InvalidRange: [416, "The requested range is not satisfiable."],
  InvalidRequest: [400, "Invalid request."],
  InvalidURI: [400, "Couldn't parse the specified URI."],
  KeyTooLongError: [400, "Your key is too long."],
  MalformedXML: [400, "The XML you provided was not well-formed or did not validate against our schema."],
  MetadataTooLarge: [400, "Your metadata headers exceed the maximum allowed metadata size."],
  MethodNotAllowed: [405, "The specified method is not allowed against this resource."],
  MissingContentLength: [411, "You must provide the Content-Length HTTP header."],
  NoSuchBucket: [404, "The specified bucket does not exist."],
  NoSuchKey: [404, "The specified key does not exist."],
  NoSuchUpload: [404, "The specified multipart upload does not exist."],
  NotImplemented: [501, "This stand-in does not implement what the request asks for."],
  PreconditionFailed: [412, "At least one of the preconditions you specified did not hold."],
  RequestTimeTooSkewed: [403, "The difference between the request time and the server's time is too large."],
  SecondLevelDomainForbidden: [403, "Please use virtual hosted style to access."],
  SignatureDoesNotMatch: [403, "The request signature we calculated does not match the signature you provided."],
  XAmzContentSHA256Mismatch: [400, "The provided x-amz-content-sha256 header does not match what was computed."],
} as const satisfies Record<string, readonly [status: number, message: string]>;

/** The codes this server refuses with by itself; a fault may use any other. */
export type S3RefusalCode = keyof typeof REFUSALS;

/** A refused request. */
export type S3Refusal = {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  /** Further elements of the error document. */
  readonly details: Readonly<Record<string, string>>;
  /** OSS' own finer code. */
  readonly ec?: string;
  /** Further headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
};

/** Or a value, or a refusal. */
export type S3Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly refusal: S3Refusal };

/** A refusal of the table, with its own text instead of the table's when one is given. */
export function refuse(
  code: S3RefusalCode,
  more: { readonly message?: string; readonly details?: Readonly<Record<string, string>>; readonly ec?: string } = {},
): { readonly ok: false; readonly refusal: S3Refusal } {
  const [status, message] = REFUSALS[code];
  const { ec } = more;
  return {
    ok: false,
    refusal: {
      status,
      code,
      message: more.message ?? message,
      details: more.details ?? {},
      ...(ec === undefined ? {} : { ec }),
    },
  };
}

/** A success. */
export function accept<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}
