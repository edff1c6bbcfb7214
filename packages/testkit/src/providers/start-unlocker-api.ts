import { fetchLocal } from "./fetch-local.ts";
import {
  type ProviderCall,
  type ProviderServer,
  readObject,
  type ScriptedAnswer,
  startProviderServer,
} from "./provider-server.ts";

/** What the Unlocker found at a URL. `isBilled` null: its debug header does not say; absent: true. */
export type UnlockerPage = {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Buffer;
  readonly isBilled?: boolean | null;
  /** Reported in `x-brd-final-url`. */
  readonly finalUrl?: string;
};

/** The provider's own refusal: 200 outside, empty, its code in a header. `status`: the one inside; absent: 502. */
export type UnlockerRefusal = {
  readonly code: string;
  readonly status?: number;
  /** Absent: the Unlocker's own, `x-brd-error-code`; the proxies below it use the other. */
  readonly header?: "x-brd-error-code" | "x-brd-err-code" | "x-luminati-error-code";
  readonly headers?: Readonly<Record<string, string>>;
};

/** What a URL leads to. `script`: an answer of the HTTP server's own, whatever the protocol says. */
export type UnlockerAnswer =
  | { readonly page: UnlockerPage }
  | { readonly refusal: UnlockerRefusal }
  | { readonly script: ScriptedAnswer };

/** How a stand-in is set up. */
export type UnlockerApiOptions = {
  readonly apiKey?: string;
  readonly zone?: string;
  readonly answers?: Readonly<Record<string, UnlockerAnswer>>;
  /** A server on 127.0.0.1 that pages without an answer here are fetched from; loopback URLs are fetched as they are. */
  readonly originPort?: number;
  /** Requests until the zone has reached its limit; absent: no limit. */
  readonly zoneLimit?: number;
  /** Requests in any second; more are throttled, with a Retry-After of one second. Absent: no limit. */
  readonly requestsPerSecond?: number;
};

/** The state of the account, as `/status` and `/zone/get_active_zones` tell it. */
export type UnlockerAccount = {
  status: string;
  canMakeRequests: boolean;
  authFailReason: string | null;
  zones: readonly string[];
};

/** A request that was understood. */
export type UnlockerRequest = {
  readonly zone: string;
  readonly url: string;
  readonly format: string;
  readonly country: string | null;
  readonly atMs: number;
};

/** A stand-in for Bright Data's API: `POST /request`, `GET /status`, `GET /zone/get_active_zones`. It reaches nothing outside. */
export type UnlockerApiServer = ProviderServer & {
  readonly apiKey: string;
  readonly zone: string;
  readonly account: UnlockerAccount;
  readonly requests: readonly UnlockerRequest[];
  /** Sets what a URL leads to from now on. */
  on(url: string, answer: UnlockerAnswer): void;
  /** What every request leads to, whatever its URL; null: as set for each. */
  always(answer: UnlockerAnswer | null): void;
};

/** Starts the stand-in with a key and a zone of its own. */
export async function startUnlockerApi(options: UnlockerApiOptions = {}): Promise<UnlockerApiServer> {
  const { apiKey = "unlocker-key-0123456789abcdef", zone = "unlocker_zone" } = options;
  const answers = new Map(Object.entries(options.answers ?? {}));
  const requests: UnlockerRequest[] = [];
  const account: UnlockerAccount = { status: "active", canMakeRequests: true, authFailReason: null, zones: [zone] };
  let everywhere: UnlockerAnswer | null = null;

  const unlock = async (call: ProviderCall): Promise<ScriptedAnswer> => {
    const body = readObject(call);
    const problem = body === null ? "body" : problemOf(body);
    if (body === null || problem !== null) {
      return json(400, { error: "Request validation failed", error_code: "validation", details: [problem] });
    }
    const { url = "", format = "" } = body as Readonly<Record<string, string>>;
    if (body["zone"] !== zone) return text(400, `zone "${String(body["zone"])}" not found`);
    const country = typeof body["country"] === "string" ? body["country"] : null;
    const isDebug = body["debug"] === true;
    const now = Date.now();
    requests.push({ zone, url, format, country, atMs: now });
    const answer = everywhere ?? answers.get(url);
    if (answer !== undefined && "script" in answer) return answer.script;
    if (account.status === "suspended") return refuse({ code: "client_10020", status: 407, header: "x-brd-err-code" });
    if (requests.length > (options.zoneLimit ?? Infinity)) {
      return refuse({ code: "client_10100", header: "x-brd-err-code" });
    }
    const recent = requests.filter(({ atMs }) => atMs > now - 1_000).length;
    if (recent > (options.requestsPerSecond ?? Infinity)) {
      return refuse({ code: "client_10110", status: 429, header: "x-brd-err-code", headers: { "retry-after": "1" } });
    }
    if (answer !== undefined && "refusal" in answer) return refuse(answer.refusal);
    const page = answer?.page ?? (await fetchPage(url, options.originPort ?? null));
    if (page === null) return refuse({ code: "proxy_error" });
    return deliver(page, isDebug, `req-${requests.length}`);
  };

  const server = await startProviderServer((call) => {
    const token = call.headers["authorization"];
    if (typeof token !== "string") return text(401, "User authentication is required");
    if (token !== `Bearer ${apiKey}`) return text(401, "Auth method is not supported");
    const [path = ""] = call.path.split("?");
    if (call.method === "POST" && path === "/request") return unlock(call);
    if (call.method === "GET" && path === "/status") {
      return json(200, {
        status: account.status,
        customer: "hl_00000000",
        can_make_requests: account.canMakeRequests,
        auth_fail_reason: account.authFailReason,
        ip: "127.0.0.1",
      });
    }
    if (call.method === "GET" && path === "/zone/get_active_zones") {
      return json(
        200,
        account.zones.map((name) => ({ name, type: "unblocker" })),
      );
    }
    return text(404, "Not found");
  });
  return Object.assign(server, {
    apiKey,
    zone,
    account,
    requests,
    on(url: string, answer: UnlockerAnswer) {
      answers.set(url, answer);
    },
    always(answer: UnlockerAnswer | null) {
      everywhere = answer;
    },
  });
}

const FIELDS = new Set(["zone", "url", "format", "method", "country", "data_format", "body", "render", "debug"]);

function problemOf(body: Readonly<Record<string, unknown>>): string | null {
  const unknown = Object.keys(body).find((name) => !FIELDS.has(name));
  if (unknown !== undefined) return unknown;
  if (typeof body["zone"] !== "string") return "zone";
  if (typeof body["url"] !== "string" || !/^https?:\/\//u.test(body["url"])) return "url";
  if (body["format"] !== "raw" && body["format"] !== "json") return "format";
  const { country } = body;
  return country === undefined || (typeof country === "string" && /^[a-z]{2}$/u.test(country)) ? null : "country";
}

async function fetchPage(url: string, originPort: number | null): Promise<UnlockerPage | null> {
  const answer = await fetchLocal(url, originPort, "Mozilla/5.0");
  if (answer === null) return null;
  const { "content-type": type, "retry-after": retryAfter } = answer.headers;
  return {
    status: answer.status,
    headers: {
      ...(type === undefined ? {} : { "content-type": type }),
      ...(retryAfter === undefined ? {} : { "retry-after": retryAfter }),
    },
    body: answer.body,
    isBilled: answer.status < 400,
    finalUrl: answer.finalUrl,
  };
}

function deliver(page: UnlockerPage, isDebug: boolean, requestId: string): ScriptedAnswer {
  const { status = 200, isBilled = true } = page;
  const billed = isBilled === null ? "" : `; billed=${isBilled}`;
  return {
    status: 200,
    headers: {
      "content-type": "text/html; charset=utf-8",
      ...page.headers,
      "x-brd-status-code": String(status),
      ...(isDebug ? { "x-brd-debug": `req_id=${requestId}; bytes_up=300; bytes_down=1000${billed}` } : {}),
      ...(page.finalUrl === undefined ? {} : { "x-brd-final-url": page.finalUrl }),
    },
    body: page.body ?? "",
  };
}

function refuse({ code, status = 502, header = "x-brd-error-code", headers = {} }: UnlockerRefusal): ScriptedAnswer {
  return {
    status: 200,
    headers: {
      ...headers,
      "x-brd-status-code": String(status),
      "x-brd-error": "the request was refused",
      [header]: code,
    },
  };
}

function text(status: number, body: string): ScriptedAnswer {
  return { status, headers: { "content-type": "text/plain" }, body };
}

function json(status: number, body: unknown): ScriptedAnswer {
  return { status, headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
}
