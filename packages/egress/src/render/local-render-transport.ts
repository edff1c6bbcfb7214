import type { Resolver } from "../dns/resolver.ts";
import type { VetUrlOptions } from "../policy/vet-url.ts";
import { createRobotsGate } from "../robots/robots-gate.ts";
import { type Clock, SYSTEM_CLOCK } from "../transport/clock.ts";
import { createDirectDialer } from "../transport/dial.ts";
import { DEFAULT_USER_AGENT, PRODUCT_TOKEN } from "../transport/user-agent.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "../transport/egress-limits.ts";
import { createPinnedClient, type PinnedClientOverrides } from "../transport/pinned-client.ts";
import { createRobotsFetch } from "../transport/robots-fetch.ts";
import { createRunningAttempts } from "../transport/running-attempts.ts";
import { createAttemptStop } from "../transport/stop.ts";
import type { Transport } from "../transport/transport.ts";
import { createBrowserPool } from "./browser-pool.ts";
import { findChromium } from "./find-chromium.ts";
import { openForwardProxy } from "./forward-proxy.ts";
import { launchBrowser, type LaunchOverrides } from "./launch-browser.ts";
import type { WaitUntil } from "./page-watch.ts";
import { renderAttempt } from "./render-attempt.ts";
import type { RenderParts } from "./rendering.ts";

/** The browser of a deployment. `jobsMax`, `memoryBytesMax`: after which a fresh one takes its place. */
export type RenderBrowser = {
  /** Null: looked for in the usual places. */
  readonly executablePath: string | null;
  readonly jobsMax: number;
  readonly memoryBytesMax: number;
};

/** What a render transport is made of. */
export type LocalRenderOptions = {
  readonly browser: RenderBrowser;
  readonly resolver: Resolver;
  /** What may be reached, by the page and by everything in it; absent means public addresses only. */
  readonly policy?: VetUrlOptions;
  readonly limits?: Partial<EgressLimits>;
  readonly userAgent?: string;
  readonly clock?: Clock;
  /** How far a page has to be before it is captured; absent: LOAD. */
  readonly waitUntil?: WaitUntil;
  /** How long a complete document is given for the rest of `waitUntil`, before it is captured as it is; absent: 30 s. */
  readonly settleTimeoutMs?: number;
  /** For tests; never from settings. */
  readonly overrides?: PinnedClientOverrides & LaunchOverrides;
};

const SETTLE_TIMEOUT_MS = 30_000;

/**
 * Renders pages in a Chromium of this machine, from its own addresses. Throws `ChromiumMissing` when there is none; no browser
 * runs before the first page, and none after `close`.
 */
export async function createLocalRenderTransport(options: LocalRenderOptions): Promise<Transport> {
  const {
    browser,
    resolver,
    policy = {},
    clock = SYSTEM_CLOCK,
    userAgent = DEFAULT_USER_AGENT,
    overrides = {},
  } = options;
  const limits: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, ...options.limits };
  const executablePath = findChromium(browser.executablePath);
  const client = createPinnedClient({ resolver, policy, limits, overrides });
  const proxy = await openForwardProxy({ resolver, policy, limits, dial: createDirectDialer(overrides) });
  const pool = createBrowserPool({
    jobsMax: browser.jobsMax,
    memoryBytesMax: browser.memoryBytesMax,
    launch: () => launchBrowser({ executablePath, proxyPort: proxy.port, overrides }),
  });
  const running = createRunningAttempts({
    ...client,
    async destroy() {
      await pool.close();
      await Promise.all([proxy.close(), client.destroy()]);
    },
  });
  const scope = { transport: "HTTP", route: "LOCAL_RENDER" } as const;
  const robots = createRobotsGate({
    fetchRobots: createRobotsFetch({ client, policy, limits, userAgent, clock, scope }, running),
    productToken: PRODUCT_TOKEN,
  });
  const { waitUntil = "LOAD", settleTimeoutMs = SETTLE_TIMEOUT_MS } = options;
  const parts: Omit<RenderParts, "robots"> = {
    pool,
    proxy,
    policy,
    limits,
    userAgent,
    clock,
    waitUntil,
    settleTimeoutMs,
  };

  return {
    fetch(request, sink, control) {
      const stop = createAttemptStop(request, control.signal, clock);
      const rendering = renderAttempt(
        request,
        sink,
        { stop, admit: control.admit },
        { ...parts, robots: request.robots === "RESPECT" ? robots : null },
      );
      return running.track(stop, rendering);
    },
    close: (deadline) => running.close(deadline),
    sockets: () => client.sockets() + proxy.sockets(),
  };
}
