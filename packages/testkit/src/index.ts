export { assertRedisEmpty, type TestRedis, testRedis } from "./servers/test-redis.ts";
export { createTestDatabase, type TestDatabase } from "./servers/create-test-database.ts";
export type { TestServers } from "./servers/test-servers.ts";
export { untilBlocked } from "./until-blocked.ts";
export { createTestSignals, type Hold, type TestSignals } from "./create-test-signals.ts";
export { type ReceivedRequest, type Receiver, type ReceiverAnswer, startReceiver } from "./start-receiver.ts";
export { startTcpProxy, type TcpProxy } from "./start-tcp-proxy.ts";
export { createGate, type Gate } from "./origin/gate.ts";
export { type OriginAnswer, type OriginBehaviour, type OriginReply } from "./origin/origin-reply.ts";
export type { OriginRequest } from "./origin/origin-request.ts";
export { bytes, bytesThenEnd, ORDINARY_PAGES, page, redirect, stall } from "./origin/pages.ts";
export { type Origin, type OriginOptions, startOrigin } from "./origin/start-origin.ts";
export { readTestAuthority, readTlsFixture, type TlsFixture, type TlsFixtureName } from "./origin/tls-fixtures.ts";
export { type ApiAnswer, type ApiJob, createStackApi, type StackApi } from "./stack/stack-api.ts";
export { type Stack, type StackOptions, startStack } from "./stack/start-stack.ts";
export {
  type ConnectProxy,
  type ConnectProxyOptions,
  type ProxyRule,
  startConnectProxy,
} from "./connect-proxy/start-connect-proxy.ts";
export type { ConnectRequest } from "./connect-proxy/connect-request.ts";
export {
  brightDataRefusal,
  type BrightDataErrorStyle,
  type ProxyAnswer,
  unverifiedAccountRefusal,
} from "./connect-proxy/proxy-answer.ts";
export {
  type CloudflareAnswer,
  type CloudflareApiServer,
  startCloudflareApi,
} from "./providers/start-cloudflare-api.ts";
export { startUnlockerApi, type UnlockerAnswer, type UnlockerApiServer } from "./providers/start-unlocker-api.ts";
export { requireChromium } from "./chromium/require-chromium.ts";
export { type ProviderServer, type ScriptedAnswer, startProviderServer } from "./providers/provider-server.ts";
export { startS3 } from "./s3/start-s3.ts";
export type { S3ObjectView, S3Options, S3Server, S3UploadView } from "./s3/s3-server.ts";
export type { S3Exchange } from "./s3/exchange-log.ts";
export { S3_FAULTS, type S3Fault, type S3FaultMatcher, type SetFault } from "./s3/faults.ts";
export type { AccessLogFormat } from "./s3/access-log.ts";
export type { S3Operation } from "./s3/perform-operation.ts";
export { lookUpLocally } from "./s3/look-up-locally.ts";
