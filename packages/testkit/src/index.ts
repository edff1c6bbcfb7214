export { assertRedisEmpty, type TestRedis, testRedis } from "./servers/test-redis.ts";
export { createTestDatabase, type TestDatabase } from "./servers/create-test-database.ts";
export type { TestServers } from "./servers/test-servers.ts";
