import { createHash, randomBytes } from "node:crypto";
import { type Clock, SYSTEM_CLOCK } from "@keble-scraper/service";
import { remember } from "../remember.ts";
import { AWAY, redisScript, type RedisScripts } from "../admission/redis-scripts.ts";

/** Whose exit it is: equal in all four, and jobs share one. */
export type StickyKey = {
  readonly callerId: string;
  readonly hostKey: string;
  readonly route: string;
  readonly stickyKey: string;
};

/** Ids under which a proxy's supplier keeps an exit for us. */
export type StickySessions = {
  /** The session of a key, made when there is none; used again, it lives on. Never throws, waits a second at most. */
  sessionFor(key: StickyKey): Promise<string>;
  /**
   * Throws a session away: the next one of its key comes out elsewhere. With `blocked`, only if it is still that one, so
   * that jobs that were blocked together rotate once.
   */
  rotate(key: StickyKey, blocked?: string): Promise<void>;
};

/** Reads the session, or makes it the candidate; either way it lives on for its time. ARGV[3] "1": in any case the candidate. */
const READ = redisScript(`
local id = redis.call("GET", KEYS[1])
if not id or ARGV[3] == "1" then id = ARGV[1] end
redis.call("SET", KEYS[1], id, "PX", ARGV[2])
return id
`);

const ROTATE = redisScript(`
if ARGV[1] == "" or redis.call("GET", KEYS[1]) == ARGV[1] then redis.call("DEL", KEYS[1]) end
return 1
`);

/** Sessions remembered per process while Redis is away. */
const LOCAL_MAX = 10_000;

/**
 * Sessions in Redis, so that all workers share them; each expires `ttlMs` after its last use. Ids are random: nothing
 * links those of two callers. While Redis is away a process keeps its own: new exits, no failure.
 */
export function createStickySessions(parts: {
  readonly redis: RedisScripts;
  readonly prefix: string;
  readonly ttlMs: number;
  readonly clock?: Clock;
  /** A new id, at most 32 of a-z0-9. */
  readonly createId?: () => string;
}): StickySessions {
  const { redis, ttlMs } = parts;
  const clock = parts.clock ?? SYSTEM_CLOCK;
  const createId = parts.createId ?? (() => randomBytes(12).toString("hex"));
  const local = new Map<string, { id: string; untilMs: number }>();
  /** Rotated while Redis was away: what it still has of them is thrown away. */
  const owed = new Map<string, true>();

  function localSession(name: string, candidate: string): string {
    const nowMs = clock.monotonicMs();
    const known = local.get(name);
    const id = known !== undefined && known.untilMs > nowMs ? known.id : candidate;
    remember(local, name, { id, untilMs: nowMs + ttlMs }, LOCAL_MAX);
    return id;
  }

  return {
    async sessionFor(key) {
      const name = nameOf(parts.prefix, key);
      const candidate = createId();
      const reply = await redis.run(READ, [name], [candidate, ttlMs, owed.has(name) ? "1" : "0"]);
      if (typeof reply !== "string") return localSession(name, candidate);
      owed.delete(name);
      return reply;
    },
    async rotate(key, blocked) {
      const name = nameOf(parts.prefix, key);
      const known = local.get(name);
      if (blocked === undefined || known?.id === blocked) local.delete(name);
      const reply = await redis.run(ROTATE, [name], [blocked ?? ""]);
      if (reply !== AWAY) return;
      remember(owed, name, true, LOCAL_MAX);
    },
  };
}

/** Redis sees neither callers nor their keys. */
function nameOf(prefix: string, { callerId, hostKey, route, stickyKey }: StickyKey): string {
  const digest = createHash("sha256").update(JSON.stringify([callerId, hostKey, route, stickyKey]));
  return `${prefix}:sticky:${digest.digest("base64url")}`;
}
