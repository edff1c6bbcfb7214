import { Redis } from "ioredis";
import type { Component } from "./component.ts";
import type { HealthCheck } from "./health.ts";
import type { Logger } from "./logger.ts";

/** Lossy news between processes: ids on named channels. Whoever needs them for sure reads Postgres besides. */
export type Hints = Component & {
  /** Fire and forget: never throws, never waits; dropped while Redis is away or too much is unsent. */
  publish(channel: string, ids: readonly string[]): void;
  /** Calls the handler with each message until the returned function is called. Survives reconnections. */
  subscribe(channel: string, handler: (ids: readonly string[]) => void): () => void;
  /** `hints`: degraded without Redis, never down. */
  readonly check: HealthCheck;
};

type Handler = (ids: readonly string[]) => void;

/** Ids in one message; more go in several. */
const IDS_PER_MESSAGE_MAX = 500;
/** Messages that Redis has not answered; more are dropped, so that a silent Redis costs no memory. */
const UNANSWERED_MAX = 1_000;
/** The largest message read: 500 ids of 200 characters, quoted. */
const MESSAGE_CHARACTERS_MAX = 120_000;
const RECONNECT_MS_MAX = 2_000;
const FIRST_CONNECTION_MS = 2_000;

/** Makes the hints of one process. Redis may be away at any time, also at start; reconnection goes on for ever. */
export function createHints(options: {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly logger: Logger;
}): Hints {
  const { logger, prefix } = options;
  const handlers = new Map<string, Set<Handler>>();
  let publisher: Redis | undefined;
  let subscriber: Redis | undefined;
  let unanswered = 0;
  let isReportedDown = false;

  const keyOf = (channel: string) => `${prefix}:hints:${channel}`;

  function connect(role: "publisher" | "subscriber"): Redis {
    const client = new Redis(options.redisUrl, {
      lazyConnect: true,
      connectTimeout: 5_000,
      commandTimeout: 2_000,
      // A message for later would be no hint: without a connection it is dropped.
      enableOfflineQueue: false,
      enableReadyCheck: true,
      maxRetriesPerRequest: 0,
      autoResubscribe: false,
      retryStrategy: (times) =>
        Math.min(100 * 2 ** Math.min(times - 1, 10), RECONNECT_MS_MAX) * (0.5 + Math.random() / 2),
      // Keepalive probes notice within about 20 s a peer that vanished without a word.
      keepAlive: 10_000,
    });
    client.on("error", (error: Error) => {
      if (!isReportedDown) {
        isReportedDown = true;
        logger.warn({ role, err: error }, "hints.lost");
      }
    });
    client.on("ready", () => {
      if (isReportedDown) {
        isReportedDown = false;
        logger.info({ role }, "hints.recovered");
      }
    });
    return client;
  }

  function listen(client: Redis, channel: string): void {
    // While there is no connection this fails; `ready` subscribes to everything again.
    client.subscribe(keyOf(channel)).catch(() => undefined);
  }

  function deliver(key: string, message: string): void {
    const channel = key.slice(keyOf("").length);
    const ids = parseIds(message);
    if (!ids) {
      return;
    }
    for (const handler of handlers.get(channel) ?? []) {
      try {
        handler(ids);
      } catch (error) {
        logger.error({ channel, err: error }, "hint.handler_failed");
      }
    }
  }

  function open(): void {
    const subscribing = connect("subscriber");
    subscribing.on("message", deliver);
    subscribing.on("ready", () => {
      for (const channel of handlers.keys()) {
        listen(subscribing, channel);
      }
    });
    subscriber = subscribing;
    publisher = connect("publisher");
  }

  function publishOne(client: Redis, channel: string, ids: readonly string[]): void {
    if (client.status !== "ready" || unanswered >= UNANSWERED_MAX) {
      return;
    }
    unanswered += 1;
    const answered = () => {
      unanswered -= 1;
    };
    client.publish(keyOf(channel), JSON.stringify(ids)).then(answered, answered);
  }

  return {
    name: "hints",
    check: {
      name: "hints",
      check: () => Promise.resolve(publisher?.status === "ready" && subscriber?.status === "ready" ? "ok" : "degraded"),
    },
    publish(channel, ids) {
      if (!publisher) {
        return;
      }
      for (let first = 0; first < ids.length; first += IDS_PER_MESSAGE_MAX) {
        publishOne(publisher, channel, ids.slice(first, first + IDS_PER_MESSAGE_MAX));
      }
    },
    subscribe(channel, handler) {
      const existing = handlers.get(channel);
      const own: Handler = (ids) => handler(ids);
      if (existing) {
        existing.add(own);
      } else {
        handlers.set(channel, new Set([own]));
        if (subscriber?.status === "ready") {
          listen(subscriber, channel);
        }
      }
      return () => {
        const set = handlers.get(channel);
        set?.delete(own);
        if (set?.size === 0) {
          handlers.delete(channel);
          if (subscriber?.status === "ready") {
            subscriber.unsubscribe(keyOf(channel)).catch(() => undefined);
          }
        }
      };
    },
    async start(signal) {
      signal.throwIfAborted();
      if (publisher) {
        return;
      }
      open();
      await Promise.all([firstConnection(publisher), firstConnection(subscriber)]);
    },
    stop() {
      publisher?.disconnect();
      subscriber?.disconnect();
      publisher = undefined;
      subscriber = undefined;
      return Promise.resolve();
    },
  };
}

/** Waits until the first try to connect has ended either way, at most 2 s. */
async function firstConnection(client: Redis | undefined): Promise<void> {
  if (!client) {
    return;
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FIRST_CONNECTION_MS);
  });
  await Promise.race([client.connect().catch(() => undefined), late]);
  clearTimeout(timer);
}

function parseIds(message: string): readonly string[] | undefined {
  if (message.length > MESSAGE_CHARACTERS_MAX) {
    return undefined;
  }
  try {
    const value: unknown = JSON.parse(message);
    return Array.isArray(value) && value.every((id) => typeof id === "string") ? value : undefined;
  } catch {
    return undefined;
  }
}
