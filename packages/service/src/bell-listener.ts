import { openListenLink } from "./bee-queue-adapter.ts";
import type { BellKind } from "./bell.ts";
import type { Component } from "./component.ts";
import type { HealthCheck } from "./health.ts";
import { createLinkSupervisor } from "./link-supervisor.ts";
import type { Logger } from "./logger.ts";

/** The listening side of one bell. */
export type BellListener = Component & {
  /** `wakeup`: degraded while no bell can be heard, never down: polls find the work. */
  readonly check: HealthCheck;
};

/**
 * Calls `onRing` for each ring that reaches this process, and once after each reconnection, for what was rung meanwhile.
 * Supervised: a canary every 10 s, two that stay unheard rebuild the connection; Redis may be away at any time.
 */
export function createBellListener(options: {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly kind: BellKind;
  onRing(): void;
  readonly logger: Logger;
  /** Milliseconds between canaries; 10,000 when absent. */
  readonly canaryMs?: number;
}): BellListener {
  const { redisUrl, prefix, kind, logger } = options;
  const name = `bell-listener-${kind}`;

  function hear(): void {
    try {
      options.onRing();
    } catch (error) {
      logger.error({ bell: kind, err: error }, "ring.handler_failed");
    }
  }

  const supervisor = createLinkSupervisor({
    name,
    logger,
    open: () => openListenLink(redisUrl, prefix, kind, hear),
    onUp: hear,
    ...(options.canaryMs === undefined ? {} : { probeIntervalMs: options.canaryMs }),
  });
  return {
    name,
    check: { name: "wakeup", check: () => Promise.resolve(supervisor.state()) },
    async start(signal) {
      signal.throwIfAborted();
      await supervisor.start();
    },
    stop: () => supervisor.stop(),
  };
}
