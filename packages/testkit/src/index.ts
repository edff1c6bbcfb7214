export { assertRedisEmpty, type TestRedis, testRedis } from "./servers/test-redis.ts";
export { createTestDatabase, type TestDatabase } from "./servers/create-test-database.ts";
export type { TestServers } from "./servers/test-servers.ts";
export { createTestSignals, type Hold, type TestSignals } from "./create-test-signals.ts";
export { type ReceivedRequest, type Receiver, type ReceiverAnswer, startReceiver } from "./start-receiver.ts";
export { startTcpProxy, type TcpProxy } from "./start-tcp-proxy.ts";
