/** A response's headers as they are stored: lower-case names, repeats joined by ", ", `set-cookie` as a list. */
export type ResponseHeaders = Readonly<Record<string, string | readonly string[]>>;

/** How the end of a body is known. A body that ends with the connection (`CLOSE`) cannot be told from a cut one. */
export type Framing = "LENGTH" | "CHUNKED" | "CLOSE";

/** A final response head, read once. */
export type ResponseHead = {
  readonly httpStatus: number;
  readonly headers: ResponseHeaders;
  /** Every value of a header, in order, one character per byte. */
  values(name: string): readonly string[];
  /** The values joined by ", "; null when the header is absent. */
  value(name: string): string | null;
  readonly framing: Framing;
  /** What Content-Length declares; null when absent or not a plain number. */
  readonly declaredBytes: number | null;
  /** False for HEAD, 204 and 304, whatever their headers say. */
  readonly mayHaveBody: boolean;
};

/** Reads the raw header list (name, value, name, value …) that undici hands over. */
export function readResponseHead(httpStatus: number, raw: readonly (Buffer | string)[], method: string): ResponseHead {
  const byName = new Map<string, string[]>();
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = toLatin1(raw[index]).toLowerCase();
    const value = toLatin1(raw[index + 1]);
    const values = byName.get(name);
    if (values === undefined) byName.set(name, [value]);
    else values.push(value);
  }
  const values = (name: string): readonly string[] => byName.get(name) ?? [];
  const value = (name: string): string | null => (byName.has(name) ? values(name).join(", ") : null);
  const length = value("content-length");
  const mayHaveBody = method !== "HEAD" && httpStatus !== 204 && httpStatus !== 304;
  return {
    httpStatus,
    headers: toHeaders(byName),
    values,
    value,
    framing: byName.has("transfer-encoding") ? "CHUNKED" : length !== null || !mayHaveBody ? "LENGTH" : "CLOSE",
    declaredBytes: length !== null && /^\d{1,15}$/.test(length) ? Number(length) : null,
    mayHaveBody,
  };
}

function toHeaders(byName: ReadonlyMap<string, readonly string[]>): ResponseHeaders {
  // `fromEntries` defines own properties, so that a header named __proto__ is one.
  return Object.fromEntries(
    [...byName].map(([name, values]) => {
      const cleaned = values.map(toStorableValue);
      return [name, name === "set-cookie" ? cleaned : cleaned.join(", ")];
    }),
  );
}

// oxlint-disable-next-line no-control-regex -- these are what is taken out
const UNSTORABLE = /[\u0000-\u0008\u000a-\u001f\u007f]/;
const UNSTORABLE_ALL = new RegExp(UNSTORABLE, "g");

/** Postgres refuses NUL, and no other control character but the tab belongs into a value. */
function toStorableValue(value: string): string {
  return UNSTORABLE.test(value) ? value.replaceAll(UNSTORABLE_ALL, "") : value;
}

function toLatin1(bytes: Buffer | string | undefined): string {
  return typeof bytes === "string" ? bytes : (bytes?.toString("latin1") ?? "");
}
