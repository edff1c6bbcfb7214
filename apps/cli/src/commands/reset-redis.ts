import { Redis } from "ioredis";
import { CliError } from "../cli-error.ts";

const CONNECT_TIMEOUT_MS = 3_000;
const COMMAND_TIMEOUT_MS = 10_000;
const SCAN_COUNT = 1_000;

/** Redis did not answer, or refused. */
class RedisAway extends Error {
  override readonly name = "RedisAway";
}

/** How many keys the namespace holds; one that Redis moves meanwhile may count twice. Throws when Redis can't be asked. */
export async function countKeys(url: string, prefix: string): Promise<number> {
  return withRedis(url, async (redis) => {
    let count = 0;
    for await (const keys of scan(redis, prefix)) count += keys.length;
    return count;
  });
}

/**
 * Deletes every key of the namespace and no other: keys are looked up by their exact prefix, batch by batch, until a whole pass
 * finds none. `onGone` is told of each batch after it has gone.
 */
export async function deleteKeys(url: string, prefix: string, onGone: (count: number) => Promise<void>): Promise<void> {
  await withRedis(url, async (redis) => {
    for (let found = 1; found > 0;) {
      found = 0;
      for await (const keys of scan(redis, prefix)) {
        found += keys.length;
        await onGone(await redis.unlink(...keys));
      }
    }
  });
}

/** What a command line ends with when Redis is away; any other error comes back as it is. */
export function toRedisError(error: unknown): unknown {
  if (!(error instanceof RedisAway)) return error;
  return new CliError("SERVER_MISSING", `SCRAPER_REDIS_URL: no command was answered there (${error.message}).`, {
    cause: error,
  });
}

/** Batches of the keys that begin with the prefix, none of them empty. A key may come twice. */
async function* scan(redis: Redis, prefix: string): AsyncGenerator<readonly string[]> {
  const pattern = `${prefix.replaceAll(/[\\*?[\]]/gu, String.raw`\$&`)}*`;
  let cursor = "0";
  do {
    const [next, found] = await redis.scan(cursor, "MATCH", pattern, "COUNT", SCAN_COUNT);
    const keys = found.filter((key) => key.startsWith(prefix));
    if (keys.length > 0) yield keys;
    cursor = next;
  } while (cursor !== "0");
}

/** Connects once and never again: whoever runs the command again connects anew. */
async function withRedis<T>(url: string, work: (redis: Redis) => Promise<T>): Promise<T> {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: CONNECT_TIMEOUT_MS,
    commandTimeout: COMMAND_TIMEOUT_MS,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  const errors: Error[] = [];
  redis.on("error", (error: Error) => errors.push(error));
  const asAway = (error: unknown) => {
    const cause: unknown = errors.at(-1) ?? error;
    const code = typeof cause === "object" && cause !== null && "code" in cause ? cause.code : null;
    return new RedisAway(typeof code === "string" ? code : "no connection", { cause });
  };
  try {
    await redis.connect().catch((error: unknown) => {
      throw asAway(error);
    });
    return await work(redis);
  } catch (error) {
    throw redis.status === "end" || errors.length > 0 ? asAway(error) : error;
  } finally {
    redis.disconnect();
  }
}
