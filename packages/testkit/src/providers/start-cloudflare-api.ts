import { fetchLocal } from "./fetch-local.ts";
import {
  type ProviderCall,
  type ProviderServer,
  readObject,
  type ScriptedAnswer,
  startProviderServer,
} from "./provider-server.ts";

/** What a browser made of a URL. `text`: a plain-text file, which Chrome shows inside a `<pre>`. */
export type CloudflarePage = {
  readonly html?: string;
  readonly text?: string;
  /** Bytes of a screenshot or PDF; absent: a few that look like one. */
  readonly bytes?: Buffer;
  /** In `meta.status`; null: no meta, as older answers had it. Absent: 200. */
  readonly status?: number | null;
  /** In `X-Browser-Ms-Used`; null: no such header. Absent: 250. */
  readonly browserMs?: number | null;
};

/** A failure envelope. `status`: absent: 422. */
export type CloudflareRefusal = {
  readonly code?: number;
  readonly message?: string;
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly browserMs?: number | null;
};

/** What a URL leads to. `script`: an answer of the HTTP server's own, whatever the protocol says. */
export type CloudflareAnswer =
  | { readonly page: CloudflarePage }
  | { readonly refusal: CloudflareRefusal }
  | { readonly script: ScriptedAnswer };

/** How a stand-in is set up. */
export type CloudflareApiOptions = {
  readonly accountId?: string;
  readonly apiToken?: string;
  /** Whether the token is a user's or the account's: each is verified elsewhere. */
  readonly tokenKind?: "USER" | "ACCOUNT";
  readonly answers?: Readonly<Record<string, CloudflareAnswer>>;
  /** A server on 127.0.0.1 that pages without an answer here are fetched from; loopback URLs are fetched as they are. */
  readonly originPort?: number;
  /** Calls in any second; more are refused with a Retry-After of one second. Absent: no limit. */
  readonly callsPerSecond?: number;
  /** Browser time until the day's is spent; absent: no limit. */
  readonly browserMsPerDay?: number;
};

/** A render that was understood. */
export type CloudflareRender = {
  readonly endpoint: "content" | "screenshot" | "pdf";
  readonly url: string | null;
  readonly body: Readonly<Record<string, unknown>>;
  readonly cacheTTL: string | null;
  readonly atMs: number;
};

/** A stand-in for Browser Rendering: `content`, `screenshot`, `pdf` and the verification of tokens. It reaches nothing outside. */
export type CloudflareApiServer = ProviderServer & {
  readonly accountId: string;
  readonly apiToken: string;
  readonly renders: readonly CloudflareRender[];
  /** Its `status`: `active`, `disabled` or `expired`. */
  readonly token: { status: string };
  /** Sets what a URL leads to from now on. */
  on(url: string, answer: CloudflareAnswer): void;
  /** What every render leads to, whatever its URL; null: as set for each. */
  always(answer: CloudflareAnswer | null): void;
};

/** Starts the stand-in with an account and a token of its own. */
export async function startCloudflareApi(options: CloudflareApiOptions = {}): Promise<CloudflareApiServer> {
  const { accountId = "0123456789abcdef0123456789abcdef", apiToken = "cloudflare-token-0123456789abcdef" } = options;
  const { tokenKind = "ACCOUNT" } = options;
  const answers = new Map(Object.entries(options.answers ?? {}));
  const renders: CloudflareRender[] = [];
  const token = { status: "active" };
  let usedMs = 0;
  let everywhere: CloudflareAnswer | null = null;

  const verify = (): ScriptedAnswer =>
    envelope(200, { success: true, errors: [], messages: [], result: { id: "t1", status: token.status } });

  const render = async (call: ProviderCall, endpoint: CloudflareRender["endpoint"]): Promise<ScriptedAnswer> => {
    const body = readObject(call);
    if (body === null || !isRender(body)) return refuse({ status: 400, message: "Invalid parameters" });
    const url = typeof body["url"] === "string" ? body["url"] : null;
    const now = Date.now();
    const cacheTTL = new URL(call.path, "http://api.invalid").searchParams.get("cacheTTL");
    renders.push({ endpoint, url, body, cacheTTL, atMs: now });
    const answer = everywhere ?? (url === null ? undefined : answers.get(url));
    if (answer !== undefined && "script" in answer) return answer.script;
    if (renders.filter(({ atMs }) => atMs > now - 1_000).length > (options.callsPerSecond ?? Infinity)) {
      return refuse({ status: 429, code: 2001, message: "Rate limit exceeded", headers: { "retry-after": "1" } });
    }
    if (usedMs >= (options.browserMsPerDay ?? Infinity)) {
      const message = "Browser time limit exceeded for today";
      const leftSeconds = Math.ceil((86_400_000 - (now % 86_400_000)) / 1_000);
      return refuse({ status: 429, code: 2001, message, headers: { "retry-after": String(leftSeconds) } });
    }
    if (answer !== undefined && "refusal" in answer) return refuse(answer.refusal);
    const html = typeof body["html"] === "string" ? body["html"] : null;
    const page = answer?.page ?? (await load(url, html, options.originPort ?? null, body["userAgent"]));
    if (page === null) return refuse({ code: 5005, message: "net::ERR_NAME_NOT_RESOLVED", browserMs: 250 });
    usedMs += page.browserMs ?? 250;
    return deliver(page, endpoint, renders.length);
  };

  const server = await startProviderServer((call) => {
    if (call.headers["authorization"] !== `Bearer ${apiToken}`) {
      return refuse({ status: 401, code: 10_000, message: "Authentication error" });
    }
    const [path = ""] = call.path.split("?");
    if (call.method === "GET" && path === "/user/tokens/verify") {
      return tokenKind === "USER" ? verify() : refuse({ status: 401, code: 1_000, message: "Invalid API Token" });
    }
    if (call.method === "GET" && path === `/accounts/${accountId}/tokens/verify`) {
      return tokenKind === "ACCOUNT" ? verify() : refuse({ status: 401, code: 1_000, message: "Invalid API Token" });
    }
    const endpoint = /^\/accounts\/([0-9a-f]{32})\/browser-rendering\/(content|screenshot|pdf)$/u.exec(path);
    if (call.method !== "POST" || endpoint === null) return refuse({ status: 404, code: 7_003, message: "No route" });
    if (endpoint[1] !== accountId) return refuse({ status: 403, code: 10_000, message: "Authentication error" });
    return render(call, endpoint[2] as CloudflareRender["endpoint"]);
  });
  return Object.assign(server, {
    accountId,
    apiToken,
    renders,
    token,
    on(url: string, answer: CloudflareAnswer) {
      answers.set(url, answer);
    },
    always(answer: CloudflareAnswer | null) {
      everywhere = answer;
    },
  });
}

/** The provider's bound of a navigation. */
const NAVIGATION_MS_MAX = 60_000;

function isRender(body: Readonly<Record<string, unknown>>): boolean {
  const isOneOf = (typeof body["url"] === "string") !== (typeof body["html"] === "string");
  const options = (body["gotoOptions"] ?? {}) as Readonly<Record<string, unknown>>;
  const { timeout = 30_000 } = options;
  return isOneOf && typeof timeout === "number" && timeout >= 1 && timeout <= NAVIGATION_MS_MAX;
}

async function load(
  url: string | null,
  html: string | null,
  originPort: number | null,
  userAgent: unknown,
): Promise<CloudflarePage | null> {
  if (html !== null || url === null) return { html: html ?? "" };
  const answer = await fetchLocal(url, originPort, typeof userAgent === "string" ? userAgent : "Mozilla/5.0");
  if (answer === null) return null;
  const isPage = /html/u.test(answer.headers["content-type"] ?? "");
  const shown = answer.body.toString("utf8");
  return { status: answer.status, ...(isPage ? { html: shown } : { text: shown }) };
}

function deliver(page: CloudflarePage, endpoint: CloudflareRender["endpoint"], ordinal: number): ScriptedAnswer {
  const headers = { ...browserTime(page.browserMs), "cf-ray": `${ordinal.toString(16).padStart(16, "0")}-AMS` };
  if (endpoint === "screenshot") {
    const png = Buffer.from("89504e470d0a1a0a0000000d49484452", "hex");
    return { status: 200, headers: { ...headers, "content-type": "image/png" }, body: page.bytes ?? png };
  }
  if (endpoint === "pdf") {
    const pdf = Buffer.from("%PDF-1.4\n%%EOF\n");
    return { status: 200, headers: { ...headers, "content-type": "application/pdf" }, body: page.bytes ?? pdf };
  }
  const { status = 200 } = page;
  const result = page.html ?? showText(page.text ?? "");
  const meta = status === null ? {} : { meta: { status, title: "a page" } };
  return envelope(200, { success: true, result, ...meta }, headers);
}

/** How Chrome shows a text file. */
function showText(text: string): string {
  const escaped = text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const style = "word-wrap: break-word; white-space: pre-wrap;";
  return `<html><head><meta name="color-scheme" content="light dark"></head><body><pre style="${style}">${escaped}</pre></body></html>`;
}

function refuse({
  code,
  message = "refused",
  status = 422,
  headers = {},
  browserMs = null,
}: CloudflareRefusal): ScriptedAnswer {
  const errors = code === undefined ? [] : [{ code, message }];
  return envelope(status, { success: false, errors }, { ...headers, ...browserTime(browserMs) });
}

function browserTime(browserMs: number | null | undefined): Readonly<Record<string, string>> {
  return browserMs === null ? {} : { "x-browser-ms-used": String(browserMs ?? 250) };
}

function envelope(status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): ScriptedAnswer {
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) };
}
