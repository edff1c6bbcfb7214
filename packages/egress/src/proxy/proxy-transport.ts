import { X509Certificate } from "node:crypto";
import { rootCertificates } from "node:tls";
import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { createRobotsGate } from "../robots/robots-gate.ts";
import { type Clock, SYSTEM_CLOCK } from "../transport/clock.ts";
import { DEFAULT_USER_AGENT, PRODUCT_TOKEN } from "../transport/user-agent.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits, socketCeilingBytes } from "../transport/egress-limits.ts";
import { fetchAttempt } from "../transport/fetch-attempt.ts";
import { createPinnedClient } from "../transport/pinned-client.ts";
import { createRobotsFetch } from "../transport/robots-fetch.ts";
import { createRunningAttempts } from "../transport/running-attempts.ts";
import { createSocketMeter } from "../transport/socket-meter.ts";
import { createAttemptStop } from "../transport/stop.ts";
import type { Transport } from "../transport/transport.ts";
import { createConnectDialer, type TunnelTarget } from "./connect-dialer.ts";
import type { ProxyProvider } from "./proxy-credentials.ts";

/** A CONNECT proxy as it is configured. `url` holds its credentials. `authorities`: PEM texts, trusted beside Node's own. */
export type ProxyRoute = {
  readonly url: string;
  readonly provider: ProxyProvider;
  readonly target: TunnelTarget;
  readonly authorities?: readonly string[];
};

/** What a proxy transport is made of. */
export type ProxyTransportOptions = {
  readonly route: "DATACENTER" | "RESIDENTIAL";
  readonly proxy: ProxyRoute;
  readonly resolver: Resolver;
  /** What may be fetched; absent means public addresses only. */
  readonly policy?: VetUrlOptions;
  readonly limits?: Partial<EgressLimits>;
  /** Identifies the fetcher to sites, with the product token KebleScraper. */
  readonly userAgent?: string;
  readonly clock?: Clock;
  /** For tests, never from settings: authorities in PEM instead of Node's. */
  readonly overrides?: { readonly authorities?: readonly string[] };
};

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Fetches through a CONNECT proxy, by the same chain as a direct fetch: the same policy, robots.txt, limits and evidence. A
 * fresh tunnel for every hop, used once, so that no two jobs ever share one. Every attempt is metered: its sockets carry at
 * most `socketCeilingBytes(limits, maxBodyBytes)`, and `usage.socketBytes` says how much, however it ended. Throws when the
 * proxy's URL or its authorities cannot be read.
 */
export function createProxyTransport(options: ProxyTransportOptions): Transport {
  const { proxy, resolver, policy = {}, clock = SYSTEM_CLOCK, userAgent = DEFAULT_USER_AGENT } = options;
  const limits: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, ...options.limits };
  const dial = createConnectDialer({
    url: proxy.url,
    provider: proxy.provider,
    target: proxy.target,
    authorities: trusted(proxy.authorities ?? [], options.overrides?.authorities),
    policy,
    wallMs: () => clock.wallMs(),
  });
  const client = createPinnedClient({ resolver, policy, limits, dial });
  const running = createRunningAttempts(client);
  const scope = { transport: "HTTP", route: options.route, reuse: "NEVER" } as const;
  const parts = { client, policy, limits, userAgent, clock, scope } as const;
  const robots = createRobotsGate({ fetchRobots: createRobotsFetch(parts, running), productToken: PRODUCT_TOKEN });

  return {
    fetch(request, sink, control) {
      const stop = createAttemptStop(request, control.signal, clock);
      const meter = createSocketMeter(socketCeilingBytes(limits, request.maxBodyBytes));
      return running.track(
        stop,
        fetchAttempt(
          request,
          sink,
          { stop, admit: control.admit },
          { ...parts, meter, robots: request.robots === "RESPECT" ? robots : null },
        ),
      );
    },
    close: (deadline) => running.close(deadline),
    sockets: () => client.sockets(),
  };
}

/** Undefined leaves the choice to Node; a list of ours replaces Node's, so that Node's has to be in it. */
function trusted(beside: readonly string[], instead: readonly string[] | undefined): readonly string[] | undefined {
  if (beside.length === 0) return instead;
  // OpenSSL passes over what it cannot read, and every target would look untrusted.
  for (const text of beside) {
    const blocks = text.match(PEM_CERTIFICATE) ?? [];
    if (blocks.length === 0) throw new Error("a proxy's authorities hold no certificate in PEM");
    for (const block of blocks) new X509Certificate(block);
  }
  return [...(instead ?? rootCertificates), ...beside];
}
