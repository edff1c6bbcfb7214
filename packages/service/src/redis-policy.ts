import type { RedisLink } from "./bee-queue-adapter.ts";
import type { Logger } from "./logger.ts";

/**
 * True when this Redis may evict keys: then bells vanish in silence, and work starts only at the next poll. Says so loudly.
 * It degrades, and never refuses: Redis carries no truth. A Redis that does not show its settings counts as well set.
 */
export async function warnOfEviction(link: RedisLink, logger: Logger): Promise<boolean> {
  try {
    const reply = await link.send("CONFIG", "GET", "maxmemory-policy");
    const policy = Array.isArray(reply) && typeof reply[1] === "string" ? reply[1] : "noeviction";
    if (policy === "noeviction") {
      return false;
    }
    logger.error({ policy, wanted: "noeviction" }, "redis.may_evict_bells");
    return true;
  } catch (error) {
    logger.debug({ err: error }, "redis.policy_unknown");
    return false;
  }
}
