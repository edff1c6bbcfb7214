import { randomBytes } from "node:crypto";
import { Redis } from "ioredis";

/** The run's Redis, and a prefix that no other test file has. */
export type TestRedis = { readonly url: string; readonly prefix: string };

/** Needs testkit's global setup, that is, the project `integration` or `fault`. */
export async function testRedis(): Promise<TestRedis> {
  const { inject } = await import("vitest");
  return { url: inject("testServers").redisUrl, prefix: `test-${randomBytes(6).toString("hex")}:` };
}

/** Throws, naming up to 20 keys, when any key starts with the prefix. */
export async function assertRedisEmpty({ url, prefix }: TestRedis): Promise<void> {
  const redis = new Redis(url, { maxRetriesPerRequest: 1 });
  try {
    const left: string[] = [];
    let cursor = "0";
    do {
      const [next, keys] = await redis.scan(cursor, "MATCH", `${prefix}*`, "COUNT", 1_000);
      left.push(...keys);
      cursor = next;
    } while (cursor !== "0");
    if (left.length > 0) {
      throw new Error(`${left.length} Redis keys left under ${prefix}: ${left.slice(0, 20).join(", ")}`);
    }
  } finally {
    redis.disconnect();
  }
}
