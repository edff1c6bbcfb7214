import { withTimeout } from "../with-timeout.ts";
import { toAccessLogLine } from "./access-log.ts";
import { createBucketView } from "./bucket-view.ts";
import { createExchangeLog, type S3Exchange } from "./exchange-log.ts";
import { createFaultTable } from "./faults.ts";
import { createHttpListener } from "./http-listener.ts";
import { createObjectTable } from "./object-table.ts";
import { createPieceKeeper } from "./piece-keeper.ts";
import type { S3Context } from "./s3-context.ts";
import type { S3Options, S3Server } from "./s3-server.ts";
import { serveExchange } from "./serve-exchange.ts";
import { createUploadTable } from "./upload-table.ts";

const PATIENCE_MS = 15_000;

/** Starts a server on 127.0.0.1 with an empty bucket. */
export async function startS3(options: S3Options = {}): Promise<S3Server> {
  const bucket = options.bucket ?? "keble-artifacts";
  const key = {
    accessKeyId: options.accessKeyId ?? "KEBLETESTKEYID",
    secretAccessKey: options.secretAccessKey ?? "keble/test+secret/of/the+stand-in",
    region: options.region ?? "us-east-1",
  };
  const context: S3Context = {
    bucket,
    dialect: options.dialect ?? "S3",
    objects: createObjectTable(),
    uploads: createUploadTable(),
    keeper: createPieceKeeper(options.directory),
    partBytesMin: options.partBytesMin ?? 5 * 1024 * 1024,
    racing: options.racing ?? "PRECONDITION",
    conditionalPuts: new Set(),
    nowMs: options.now ?? Date.now,
  };
  const faults = createFaultTable();
  const log = createExchangeLog();
  const listener = createHttpListener(options.port ?? 0, (incoming, response) =>
    serveExchange({ context, key, faults, log }, incoming, response),
  );
  await listener.start();

  const wait = (match: (exchange: S3Exchange) => boolean, count: number, timeoutMs: number) =>
    withTimeout(log.waitFor(match, count), timeoutMs, () => {
      const came = log.all().map(({ method, target }) => `${method} ${target.split("?")[0] ?? ""}`);
      return `${count} requests; came so far: ${came.slice(-20).join(", ")}`;
    });

  return {
    url: `http://127.0.0.1:${listener.port}`,
    virtualHostUrl: `http://localhost:${listener.port}`,
    port: listener.port,
    bucket,
    ...key,
    ...createBucketView(context),
    requests: () => log.all(),
    waitFor: (match, count = 1, timeoutMs = PATIENCE_MS) =>
      wait((exchange) => exchange.totalMs !== null && match(exchange), count, timeoutMs),
    async waitForArrival(match, timeoutMs = PATIENCE_MS) {
      const [exchange] = await wait(match, 1, timeoutMs);
      if (exchange === undefined) throw new Error("unreachable: one request was asked for");
      return exchange;
    },
    accessLog: (format) =>
      log
        .all()
        .filter(({ totalMs }) => totalMs !== null)
        .map((exchange) => toAccessLogLine(format, exchange, key.accessKeyId)),
    fail: (matcher, fault) => faults.set(matcher, fault),
    stop: () => listener.stop(),
    start: () => listener.start(),
    connections: () => listener.connections(),
    [Symbol.asyncDispose]: () => listener.stop(),
  };
}
