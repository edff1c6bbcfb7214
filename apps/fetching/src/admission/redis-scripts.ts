import { createHash } from "node:crypto";
import type { Component, HealthCheck, Logger } from "@keble-scraper/service";
import { Redis, type RedisOptions } from "ioredis";

/** A Lua script and the name Redis keeps it by. */
export type RedisScript = { readonly text: string; readonly sha: string };

/** Makes a script of its text. */
export function redisScript(text: string): RedisScript {
  return { text, sha: createHash("sha1").update(text).digest("hex") };
}

/** What a script answers while Redis can't be asked. */
export const AWAY = Symbol("away");

/** One connection to Redis for small atomic steps. Redis may be away at any time, also at start. */
export type RedisScripts = Component & {
  /**
   * Runs a script, by its name and, where Redis does not know it, by its text. `AWAY`: there is no connection, or no good
   * answer within a second; whether the script ran is unknown then. Never throws, never queues.
   */
  run(script: RedisScript, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown>;
  /** Whether a script would be sent now. */
  isUp(): boolean;
  /** Calls the listener each time a connection is made. */
  onUp(listener: () => void): void;
  /** `admission`: degraded without Redis, never down. */
  readonly check: HealthCheck;
};

/** A silent Redis holds a caller this long, once: then the connection is thrown away and nobody waits for it. */
const ANSWER_MS = 1_000;
const RECONNECT_MS_MAX = 1_000;
const FIRST_CONNECTION_MS = 2_000;
/** After an answer that refuses the script itself (full, read-only, loading), it is not asked for this long. */
const REFUSED_MS = 500;

/** Makes the connection of one process; reconnection goes on for ever. */
export function createRedisScripts(options: { readonly redisUrl: string; readonly logger: Logger }): RedisScripts {
  const { logger } = options;
  const listeners: (() => void)[] = [];
  let client: Redis | undefined;
  let isReportedAway = false;
  let refusedUntilMs = 0;

  function report(error: unknown): void {
    if (isReportedAway) return;
    isReportedAway = true;
    logger.warn({ err: error }, "admission.redis_lost");
  }

  function connect(): Redis {
    const made = new Redis(options.redisUrl, CONNECTION);
    made.on("error", report);
    made.on("ready", () => {
      refusedUntilMs = 0;
      if (isReportedAway) {
        isReportedAway = false;
        logger.info("admission.redis_recovered");
      }
      for (const listener of listeners) listener();
    });
    return made;
  }

  function isUp(): boolean {
    return client?.status === "ready" && performance.now() >= refusedUntilMs;
  }

  function condemn(used: Redis, error: unknown): void {
    report(error);
    if (isReply(error)) {
      refusedUntilMs = performance.now() + REFUSED_MS;
      isReportedAway = false;
    } else if (used === client && used.status === "ready") {
      used.disconnect(true);
    }
  }

  return {
    name: "admission-redis",
    check: { name: "admission", check: () => Promise.resolve(isUp() ? "ok" : "degraded") },
    isUp,
    onUp(listener) {
      listeners.push(listener);
    },
    async run(script, keys, args) {
      const used = client;
      if (used === undefined || !isUp()) return AWAY;
      try {
        return await used.evalsha(script.sha, keys.length, ...keys, ...args);
      } catch (error) {
        if (!isUnknownScript(error)) {
          condemn(used, error);
          return AWAY;
        }
      }
      try {
        return await used.eval(script.text, keys.length, ...keys, ...args);
      } catch (error) {
        condemn(used, error);
        return AWAY;
      }
    },
    async start(signal) {
      signal.throwIfAborted();
      if (client !== undefined) return;
      client = connect();
      await firstConnection(client);
    },
    stop() {
      client?.disconnect();
      client = undefined;
      return Promise.resolve();
    },
  };
}

const CONNECTION: RedisOptions = {
  lazyConnect: true,
  connectTimeout: 5_000,
  commandTimeout: ANSWER_MS,
  // A step for later is of no use, and one that is sent again would book twice.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableReadyCheck: true,
  retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times - 1, 10), RECONNECT_MS_MAX) * (0.5 + Math.random() / 2),
  keepAlive: 10_000,
};

/** Redis answered, though not with what was asked for. */
function isReply(error: unknown): error is Error {
  return error instanceof Error && error.name === "ReplyError";
}

function isUnknownScript(error: unknown): boolean {
  return isReply(error) && error.message.startsWith("NOSCRIPT");
}

/** Waits until the first try to connect has ended either way, at most 2 s. */
async function firstConnection(client: Redis): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, FIRST_CONNECTION_MS);
  });
  await Promise.race([client.connect().catch(() => undefined), late]);
  clearTimeout(timer);
}
