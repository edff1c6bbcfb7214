import type { UpstreamCode, UpstreamFailure } from "@keble-scraper/contract";
import type { Resolver } from "../dns/resolver.ts";
import type { AddressPolicy } from "../policy/classify-address.ts";
import { createPrefixStage } from "../transport/body-stage.ts";
import type { ExchangeProgress } from "../transport/exchange.ts";
import type { PinnedClientOverrides } from "../transport/pinned-client.ts";
import type { ResponseHead } from "../transport/response-head.ts";
import { createStop } from "../transport/stop.ts";
import { DEFAULT_USER_AGENT } from "../transport/user-agent.ts";
import { createProviderClient, type ProviderApi, type ProviderClient } from "./provider-client.ts";
import { type ProviderOrigin, toCallFailure, toTimeout } from "./provider-failure.ts";
import { readThrough } from "./read-through.ts";

/** Whether a provider would serve us now. A probe that was aborted is a failure like one that got no answer. */
export type ProbeResult = { readonly ok: true } | { readonly ok: false; readonly failure: UpstreamFailure };

/** What a probe is made of. It opens its own connections and closes them before it answers. */
export type ProbeOptions = {
  readonly resolver: Resolver;
  /** How the API's addresses are judged; absent: public addresses only (loopback when the URL says so). */
  readonly policy?: AddressPolicy;
  /** What the API sees of us. */
  readonly userAgent?: string;
  /** For everything the probe asks. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Why the route is quarantined; null or absent: it is not, and what costs money is not asked. */
  readonly quarantinedFor?: UpstreamCode | null;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides;
};

/** An answer that is small by its nature. */
export type ProbeAnswer =
  | { readonly ok: true; readonly head: ResponseHead; readonly text: string }
  | { readonly ok: false; readonly failure: UpstreamFailure };

/** Asks one thing. */
export type Ask = (method: "GET" | "POST", path: string, body: string | null) => Promise<ProbeAnswer>;

/** Status answers take a few hundred bytes; a list of zones may take more. */
const ANSWER_BYTES_MAX = 256 * 1024;

/** Runs `probe` with a client of its own, within the options' time, and leaves no socket behind. */
export async function withProbe(
  api: ProviderApi,
  route: string,
  origin: ProviderOrigin,
  options: ProbeOptions,
  probe: (ask: Ask) => Promise<ProbeResult>,
): Promise<ProbeResult> {
  const { resolver, policy = {}, overrides, userAgent = DEFAULT_USER_AGENT } = options;
  const client = createProviderClient({ api, route, resolver, policy, limits: {}, userAgent, overrides });
  const stop = createStop({
    signal: options.signal,
    deadline: Infinity,
    limitMs: options.timeoutMs,
    nowMs: performance.now(),
  });
  try {
    return await probe((method, path, body) => ask(client, origin, stop, { method, path, body }));
  } finally {
    stop.end();
    await client.pinned.destroy();
  }
}

async function ask(
  client: ProviderClient,
  origin: ProviderOrigin,
  stop: ReturnType<typeof createStop>,
  question: { readonly method: "GET" | "POST"; readonly path: string; readonly body: string | null },
): Promise<ProbeAnswer> {
  const kept = createPrefixStage(ANSWER_BYTES_MAX);
  const progress: ExchangeProgress = { sent: false, head: null, wireBytes: 0 };
  const { limits } = client;
  const result = await client.call({
    ...question,
    accept: "application/json",
    callerId: "",
    stop,
    progress,
    timings: { dnsMs: null, connectMs: null },
    onHead: (head) => readThrough(head, kept, ANSWER_BYTES_MAX, limits),
  });
  if (result.kind === "DONE") return { ok: true, head: result.head, text: client.redact(kept.read().toString("utf8")) };
  if (result.kind === "STOPPED") {
    return { ok: false, failure: toTimeout(progress.head === null ? "HEAD" : "BODY", origin, null) };
  }
  if (result.kind === "ROUTE_FAILED") return { ok: false, failure: result.failure };
  return { ok: false, failure: toCallFailure(result, origin, null) };
}
