import { createWatch } from "../create-watch.ts";
import type { S3Operation } from "./perform-operation.ts";
import type { S3Request } from "./s3-request.ts";

/** One request and what became of it. */
export type S3Exchange = {
  readonly requestId: string;
  readonly arrivedAt: Date;
  readonly remoteAddress: string;
  readonly httpVersion: string;
  readonly method: string;
  /** The request target as sent, with its query. */
  readonly target: string;
  readonly host: string;
  readonly bucket: string;
  readonly key: string;
  readonly operation: S3Operation;
  /** Decoded, in the order sent. */
  readonly query: readonly (readonly [name: string, value: string])[];
  /** Lower-case names; values are cut at 2,048 characters. */
  readonly headers: Readonly<Record<string, string>>;
  /** How it was signed, when it was signed right. */
  readonly signed: "HEADER" | "QUERY" | null;
  /** Null: no answer has gone out, or none will. */
  readonly status: number | null;
  /** The error's code; null without an error. */
  readonly code: string | null;
  readonly responseHeaders: Readonly<Record<string, string>>;
  readonly bytesReceived: number;
  readonly bytesSent: number;
  /** Null: no object is concerned. */
  readonly objectBytes: number | null;
  /** Milliseconds from head to end; null while it goes on. */
  readonly totalMs: number | null;
};

/** The same, while it is being written. */
export type OpenExchange = { -readonly [Name in keyof S3Exchange]: S3Exchange[Name] };

/** All requests of a server, the last 10,000 kept. */
export type ExchangeLog = {
  open(
    request: S3Request,
    operation: S3Operation,
    from: Pick<S3Exchange, "arrivedAt" | "remoteAddress" | "httpVersion">,
  ): OpenExchange;
  /** Notes that more of a request's body came in. */
  received(exchange: OpenExchange, bytes: number): void;
  /** Notes when an exchange has ended. */
  close(exchange: OpenExchange, totalMs: number): void;
  /** In the order of arrival. */
  all(): readonly S3Exchange[];
  /** Resolves with the first `count` requests that match, past ones included. */
  waitFor(match: (exchange: S3Exchange) => boolean, count: number): Promise<readonly S3Exchange[]>;
};

const KEPT_MAX = 10_000;
const VALUE_CHARACTERS_MAX = 2048;

/** An empty log. */
export function createExchangeLog(): ExchangeLog {
  const kept: OpenExchange[] = [];
  let count = 0;
  const { changed, until } = createWatch();
  return {
    open(request, operation, from) {
      count += 1;
      const values = [...request.headers].map(([name, value]) => [name, value.slice(0, VALUE_CHARACTERS_MAX)] as const);
      const { method, target, host, bucket, key, query } = request;
      const exchange: OpenExchange = {
        requestId: count.toString(16).toUpperCase().padStart(16, "0"),
        ...from,
        method,
        target,
        host,
        bucket,
        key,
        query,
        operation,
        headers: Object.fromEntries(values),
        signed: null,
        status: null,
        code: null,
        responseHeaders: {},
        bytesReceived: 0,
        bytesSent: 0,
        objectBytes: null,
        totalMs: null,
      };
      kept.push(exchange);
      if (kept.length > KEPT_MAX) kept.shift();
      changed();
      return exchange;
    },
    received(exchange, bytes) {
      exchange.bytesReceived += bytes;
      changed();
    },
    close(exchange, totalMs) {
      exchange.totalMs = totalMs;
      changed();
    },
    all: () => [...kept],
    waitFor: (match, wanted) =>
      until(() => {
        const matching = kept.filter(match);
        return matching.length >= wanted ? matching.slice(0, wanted) : undefined;
      }),
  };
}
