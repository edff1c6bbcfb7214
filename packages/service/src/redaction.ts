/** What stands in a line where something was taken out. */
const REDACTED = "[redacted]";

/** Bounds of one line: nesting, entries of one object or list, characters of one text, frames of a stack, causes. */
const DEPTH_MAX = 5;
const ENTRIES_MAX = 50;
const TEXT_CHARACTERS_MAX = 1_000;
const STACK_FRAMES_MAX = 12;
const CAUSES_MAX = 3;

/**
 * Field names whose values never belong in a line, compared in lower case without `-` and `_`. A name counts when it is
 * one of these or ends with one of them (`proxyPassword`, `x-api-key`, `targetUrl`).
 */
const SECRET_NAMES = [
  "authorization",
  "username",
  "userinfo",
  "cookie",
  "cookies",
  "password",
  "passphrase",
  "secret",
  "secrets",
  "secretkey",
  "accesskey",
  "accesskeyid",
  "privatekey",
  "apikey",
  "token",
  "tokens",
  "credential",
  "credentials",
  "signature",
  "session",
  "url",
  "uri",
  "urls",
  "href",
  "query",
  "querystring",
  "body",
  "payload",
  "html",
  "content",
  "headers",
  "rawheaders",
  "parameters",
  "connectionstring",
  "dsn",
] as const;

const SECRET_NAME = new RegExp(`(?:${SECRET_NAMES.join("|")})$`, "u");

/** Names that end like a secret's and are plain figures. */
const PLAIN_NAMES: ReadonlySet<string> = new Set(["hastoken", "bodybytes"]);

/** `scheme://…` up to a blank, quote or bracket; and what follows `data:`, which holds bytes. */
const URLS = /\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s"'<>)\]}]+|\bdata:[^\s"'<>)\]}]{8,}/giu;
/** Credentials in the spellings that headers, JSON, our keys and callback secrets have. */
const CREDENTIALS =
  /\b(?:bearer|basic)\s+[\w.~+/=-]{4,}|\bwhsec_[\w+/=-]+|\b(?:password|passwd|pwd|secret|token|api[_-]?key|authorization|cookie|signature)["']?\s*[=:]\s*[["']*(?:(?:bearer|basic)\s+)?[^\s,;&"'\]]+/giu;
/** A proxy's user name in its supplier's spelling, with what follows it: account, zone, session and password. */
const PROXY_NAMES = /\b(?:brd|lum)-customer-[^\s"'<>)\]}]+/giu;
/** `user:password@host`, as a proxy is written without its scheme. */
const USER_INFO = /[^\s"'<>(){}[\]@/:]{1,256}:[^\s"'<>(){}[\]@/]{1,256}@(?=[\w.[-])/gu;
const CONTROLS = /\p{Cc}+/gu;
const CODE = /^[A-Za-z0-9_.-]{1,64}$/u;

/** A text with its URLs and credentials taken out, on one line, of at most 1,000 characters. */
export function redactText(text: string): string {
  // Cut twice: before, to bound the work; after, because a replacement may be longer than what it replaces.
  const cut = text.length > TEXT_CHARACTERS_MAX * 2 ? text.slice(0, TEXT_CHARACTERS_MAX * 2) : text;
  const clean = cut
    .replace(URLS, "[url]")
    .replace(USER_INFO, `${REDACTED}@`)
    .replace(PROXY_NAMES, REDACTED)
    .replace(CREDENTIALS, REDACTED)
    .replace(CONTROLS, " ");
  return clean.length > TEXT_CHARACTERS_MAX ? `${clean.slice(0, TEXT_CHARACTERS_MAX)}…` : clean;
}

/** An error's name, code, scrubbed message, stack frames and causes; every other field of it is dropped. */
export function redactError(error: Error, causes: number = CAUSES_MAX): Record<string, unknown> {
  const code: unknown = "code" in error ? error.code : undefined;
  const frames = error.stack
    ?.split("\n")
    .filter((line) => /^\s+at /u.test(line))
    .slice(0, STACK_FRAMES_MAX)
    .map((line) => line.trim().replace(/file:\/\//gu, ""));
  const cause = error.cause;
  return {
    type: CODE.test(error.name) ? error.name : "Error",
    ...((typeof code === "string" && CODE.test(code)) || typeof code === "number" ? { code } : {}),
    message: redactText(error.message),
    ...(frames && frames.length > 0 ? { stack: frames.join("\n") } : {}),
    ...(cause instanceof Error && causes > 0 ? { cause: redactError(cause, causes - 1) } : {}),
    ...(error instanceof AggregateError && causes > 0
      ? { errors: error.errors.slice(0, CAUSES_MAX).map((each) => redactUnknownError(each, causes - 1)) }
      : {}),
  };
}

/** A copy of a value that is fit for a line: bounded, with telling fields and texts taken out. */
export function redactValue(value: unknown): unknown {
  return redactAt(value, 0);
}

function redactUnknownError(error: unknown, causes: number): unknown {
  return error instanceof Error ? redactError(error, causes) : redactAt(error, 1);
}

function redactAt(value: unknown, depth: number): unknown {
  switch (typeof value) {
    case "string":
      return redactText(value);
    case "number":
    case "boolean":
    case "undefined":
      return value;
    case "bigint":
      return value.toString();
    case "symbol":
    case "function":
      return undefined;
    case "object":
      return value === null ? null : redactObject(value, depth);
  }
}

function redactObject(value: object, depth: number): unknown {
  if (value instanceof Error) {
    return redactError(value);
  }
  if (value instanceof Date) {
    return Number.isNaN(value.getTime()) ? null : value.toISOString();
  }
  // A URL, bytes, a map, a stream or a response: a payload in another dress.
  const prototype: unknown = Object.getPrototypeOf(value);
  const isList = Array.isArray(value);
  if (!isList && prototype !== Object.prototype && prototype !== null) {
    return `[${value.constructor.name}]`;
  }
  if (depth >= DEPTH_MAX) {
    return "[deep]";
  }
  if (isList) {
    return value.slice(0, ENTRIES_MAX).map((entry) => redactAt(entry, depth + 1));
  }
  const copy: Record<string, unknown> = {};
  for (const [name, entry] of Object.entries(value).slice(0, ENTRIES_MAX)) {
    copy[name] = isSecretName(name) && entry !== null && entry !== undefined ? REDACTED : redactAt(entry, depth + 1);
  }
  return copy;
}

function isSecretName(name: string): boolean {
  const plain = name.toLowerCase().replace(/[-_]/gu, "");
  return SECRET_NAME.test(plain) && !PLAIN_NAMES.has(plain);
}
