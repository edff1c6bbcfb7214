import type { ProbeResult } from "../providers/probe.ts";
import { createStop } from "../transport/stop.ts";
import { silenceFailure } from "./classify-refusal.ts";
import { authorityOf } from "./connect-head.ts";
import { openTunnel } from "./open-tunnel.ts";
import { type ProxyProvider, parseProxyUrl } from "./proxy-credentials.ts";

/**
 * How to probe. `target`: `host:port` that the proxy is asked to connect to; absent: Bright Data's own test host, and
 * for any other proxy the proxy itself.
 */
export type ProxyProbeOptions = {
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  readonly target?: string;
};

/** Bright Data keeps it for tests and does not limit its rate (docs.brightdata.com, config options, read 2026-11-30). */
const BRIGHT_DATA_TEST_TARGET = "geo.brdtest.com:443";

/**
 * One CONNECT, closed as soon as it is answered: some hundred bytes, nothing inside the tunnel. Bright Data has to open it.
 * Another proxy has to answer and to accept our credentials: whether it would connect to the test's target says
 * nothing about others. A failure is what a job's attempt would have ended with. An aborted probe is a failure like a silent proxy.
 */
export async function probeProxy(
  proxy: { readonly url: string; readonly provider: ProxyProvider },
  options: ProxyProbeOptions,
): Promise<ProbeResult> {
  const address = parseProxyUrl(proxy.url);
  const stop = createStop({
    signal: options.signal,
    deadline: Infinity,
    limitMs: options.timeoutMs,
    nowMs: performance.now(),
  });
  try {
    const tunnel = await openTunnel({
      proxy: address,
      provider: proxy.provider,
      authority:
        options.target ??
        (proxy.provider === "BRIGHT_DATA" ? BRIGHT_DATA_TEST_TARGET : authorityOf(address.host, address.port)),
      wish: { country: null, session: null },
      track() {},
      stop,
      timeoutMs: options.timeoutMs,
      wallMs: () => Date.now(),
    });
    if (tunnel.kind === "OPEN") {
      tunnel.raw.destroy();
      return { ok: true };
    }
    if (tunnel.kind === "STOPPED") return { ok: false, failure: silenceFailure("PROXY_TIMEOUT") };
    const isServed = tunnel.kind === "REFUSED" && proxy.provider === "PLAIN" && !ACCOUNT_CODES.has(tunnel.failure.code);
    return isServed ? { ok: true } : { ok: false, failure: tunnel.failure };
  } finally {
    stop.end();
  }
}

/** What a proxy says about us and not about the target of the probe. */
const ACCOUNT_CODES: ReadonlySet<string> = new Set([
  "PROVIDER_AUTH",
  "PROVIDER_PAYMENT",
  "PROVIDER_QUOTA",
  "PROVIDER_CAPACITY",
]);
