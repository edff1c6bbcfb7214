/** One request as S3 reads it: addressed, with its query and headers taken apart once. */
export type S3Request = {
  readonly method: string;
  /** The request target as sent: path and query. */
  readonly target: string;
  /** The path as sent, still encoded. */
  readonly path: string;
  /** As sent, with its port. */
  readonly host: string;
  readonly addressing: "PATH" | "VIRTUAL_HOST";
  /** "" for the service itself. */
  readonly bucket: string;
  /** "" for the bucket itself. */
  readonly key: string;
  /** Decoded, in the order sent. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Lower-case names; lines of one name are joined by a comma. */
  readonly headers: ReadonlyMap<string, string>;
};

/** What the parser looks at; node's own request has it. */
export type RawHead = {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly rawHeaders: readonly string[];
};

/**
 * Reads a request's head. A Host of `<bucket>.<anything>`, for the server's own bucket, or `<anything>.localhost` is
 * virtual-hosted; on any other the bucket is the path's first segment. Null: path or query can't be decoded.
 */
export function parseS3Request(head: RawHead, ownBucket: string): S3Request | null {
  const target = head.url ?? "/";
  const mark = target.indexOf("?");
  const path = mark === -1 ? target : target.slice(0, mark);
  const headers = readHeaders(head.rawHeaders);
  const host = headers.get("host") ?? "";
  try {
    const virtual = virtualBucket(host.replace(/:\d+$/, ""), ownBucket);
    const decoded = decodeURIComponent(path.slice(1));
    const slash = decoded.indexOf("/");
    return {
      method: head.method ?? "GET",
      target,
      path,
      host,
      addressing: virtual === null ? "PATH" : "VIRTUAL_HOST",
      bucket: virtual ?? (slash === -1 ? decoded : decoded.slice(0, slash)),
      key: virtual !== null ? decoded : slash === -1 ? "" : decoded.slice(slash + 1),
      query: mark === -1 ? [] : readQuery(target.slice(mark + 1)),
      headers,
    };
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}

/** The first value of a query parameter; undefined when it is absent, "" when it has none. */
export function parameterOf(request: S3Request, name: string): string | undefined {
  return request.query.find(([given]) => given === name)?.[1];
}

function virtualBucket(hostname: string, ownBucket: string): string | null {
  if (hostname.startsWith(`${ownBucket}.`)) return ownBucket;
  return hostname.endsWith(".localhost") ? hostname.slice(0, hostname.indexOf(".")) : null;
}

function readQuery(text: string): [string, string][] {
  return text
    .split("&")
    .filter((part) => part !== "")
    .map((part) => {
      const equals = part.indexOf("=");
      return equals === -1 ? [decode(part), ""] : [decode(part.slice(0, equals)), decode(part.slice(equals + 1))];
    });
}

function decode(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function readHeaders(raw: readonly string[]): Map<string, string> {
  const headers = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] ?? "").toLowerCase();
    const value = raw[i + 1] ?? "";
    const before = headers.get(name);
    headers.set(name, before === undefined ? value : `${before},${value}`);
  }
  return headers;
}
