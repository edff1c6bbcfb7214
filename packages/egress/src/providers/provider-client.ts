import type { Resolver } from "../dns/resolver.ts";
import { allowedTargetsOf } from "../policy/allowed-targets-of.ts";
import type { AddressPolicy } from "../policy/classify-address.ts";
import { vetUrl, type VettedUrl } from "../policy/vet-url.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "../transport/egress-limits.ts";
import type { ExchangeProgress, HeadVerdict } from "../transport/exchange.ts";
import type { HopTimings } from "../transport/hop-timings.ts";
import {
  createPinnedClient,
  type PinnedClient,
  type PinnedClientOverrides,
  type PinnedResult,
} from "../transport/pinned-client.ts";
import { hostHeader } from "../transport/request-headers.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { type Stop, TIMER_MS_MAX } from "../transport/stop.ts";

/** A provider's HTTP API as an operator configured it. `token` goes into the Authorization header and nowhere else. */
export type ProviderApi = { readonly url: string; readonly token: string };

/** One call. `path`: path and query behind the API's own. `accept`: the media types that its documents promise. */
export type ProviderCall = {
  readonly method: "GET" | "POST";
  readonly path: string;
  readonly accept: string;
  /** JSON; null: none. */
  readonly body: string | null;
  /** Connections are never shared between callers; empty: nobody's. */
  readonly callerId: string;
  readonly stop: Stop;
  readonly progress: ExchangeProgress;
  readonly timings: HopTimings;
  readonly onHead: (head: ResponseHead) => HeadVerdict;
};

/** Calls one provider's API over connections of its own, pinned and vetted like any. */
export type ProviderClient = {
  call(call: ProviderCall): Promise<PinnedResult>;
  /** A text of the provider's without our token in it. Heads come without it already. */
  redact(text: string): string;
  /** Its pool, for whoever closes it. */
  readonly pinned: PinnedClient;
  readonly limits: EgressLimits;
};

/** What a provider client is made of. */
export type ProviderClientOptions = {
  readonly api: ProviderApi;
  readonly route: string;
  readonly resolver: Resolver;
  readonly policy: AddressPolicy;
  readonly limits: Partial<EgressLimits> | undefined;
  readonly userAgent: string;
  readonly overrides: PinnedClientOverrides | undefined;
};

/** A provider takes its time where a site would not: its robots.txt goes through all that a page does. */
const PROVIDER_LIMITS: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, robotsTimeoutMs: 90_000 };

/**
 * A client of the API at `api.url`. Throws when that is not https, plain http to loopback aside: a key must not be sent in
 * clear, nor to a private network.
 */
export function createProviderClient(options: ProviderClientOptions): ProviderClient {
  const base = vetApiUrl(options.api.url);
  // The attempt's own limit is the timeout of an answer: a provider may work on a page for minutes.
  const limits: EgressLimits = { ...PROVIDER_LIMITS, ...options.limits, responseTimeoutMs: TIMER_MS_MAX };
  const { resolver, policy, overrides, route, userAgent } = options;
  const pinned = createPinnedClient({ resolver, policy, limits, overrides });
  const prefix = base.target.replace(/\/+$/u, "");
  const { token } = options.api;
  return {
    pinned,
    limits,
    redact: (text) => text.replaceAll(token, ""),
    async call({ method, path, accept, body, callerId, stop, progress, timings, onHead }) {
      const headers = ["host", hostHeader(base), "user-agent", userAgent, "accept", accept];
      headers.push("accept-encoding", "gzip, br", "authorization", `Bearer ${token}`);
      if (body !== null) headers.push("content-type", "application/json");
      const result = await pinned.request({
        scope: { transport: "HTTP", route, callerId },
        url: base,
        request: { method, target: prefix + path, headers, ...(body === null ? {} : { body }) },
        stop,
        progress,
        timings,
        onHead(head) {
          const safe = withoutToken(head, token);
          progress.head = safe;
          return onHead(safe);
        },
      });
      return result.kind === "DONE" ? { kind: "DONE", head: progress.head ?? result.head } : result;
    },
  };
}

/** A head whose headers may be stored: an API that repeats what it was sent must not bring our token into a result. */
function withoutToken(head: ResponseHead, token: string): ResponseHead {
  const isSafe = ([, value]: [string, string | readonly string[]]): boolean => !String(value).includes(token);
  const entries = Object.entries(head.headers);
  if (entries.every(isSafe)) return head;
  const headers = Object.fromEntries(entries.filter(isSafe));
  return {
    ...head,
    headers,
    values: (name) => (Object.hasOwn(headers, name) ? head.values(name) : []),
    value: (name) => (Object.hasOwn(headers, name) ? head.value(name) : null),
  };
}

function vetApiUrl(text: string): VettedUrl {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || `${url.username}${url.password}${url.search}` !== "") {
    throw new Error("a provider's API needs a plain URL without credentials or query");
  }
  // The system's resolver may know another localhost.
  if (url.hostname === "localhost") url.hostname = "127.0.0.1";
  const host = url.hostname.replace(/^\[|\]$/gu, "");
  const isLoopback = host === "::1" || /^127(?:\.\d+){3}$/u.test(host);
  if (url.protocol !== "https:" && !isLoopback) throw new Error("a provider's API is called over https only");
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port);
  const vetted = vetUrl(url.href, isLoopback ? { allowedTargets: allowedTargetsOf([{ host, port }]) } : {});
  if (!vetted.ok) throw new Error(`a provider's API may not be called there: ${vetted.reason}`);
  return vetted.url;
}
