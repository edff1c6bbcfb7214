import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { withTimeout } from "./with-timeout.ts";

/** One request as it came in. */
export type ReceivedRequest = {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  /** Names and values as sent, in order. */
  readonly headers: readonly (readonly [name: string, value: string])[];
  /** The exact bytes sent. */
  readonly body: Buffer;
  /** Milliseconds since the epoch, when the head was read. */
  readonly arrivedAtMs: number;
  /** The first value of a header, whatever its case. */
  header(name: string): string | undefined;
};

/**
 * What a path answers. A number is a status without a body. `until` delays the answer; RESET cuts the connection without
 * one; HANG never answers and keeps the connection.
 */
export type ReceiverAnswer =
  | number
  | "RESET"
  | "HANG"
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      readonly until?: Promise<unknown>;
    };

/** A real HTTP server that takes what it is sent. Disposing it cuts what is open. */
export type Receiver = AsyncDisposable & {
  /** `http://127.0.0.1:port`, without a slash at the end. */
  readonly url: string;
  /** `127.0.0.1:port`, as allow-lists want it. */
  readonly hostPort: string;
  readonly requests: readonly ReceivedRequest[];
  /** Sets what a path answers from now on: one after the other, the last one for ever. */
  script(path: string, answers: readonly ReceiverAnswer[]): void;
  /** The first request that matches, past ones included; fails after `timeoutMs` (15,000). */
  waitFor(match: (request: ReceivedRequest) => boolean, timeoutMs?: number): Promise<ReceivedRequest>;
  /** The first `count` requests that match; fails after `timeoutMs` (15,000). */
  waitForCount(
    count: number,
    match?: (request: ReceivedRequest) => boolean,
    timeoutMs?: number,
  ): Promise<readonly ReceivedRequest[]>;
};

const PATIENCE_MS = 15_000;

/** Starts a receiver on 127.0.0.1. A path without a script answers 204. `port` absent: any. */
export async function startReceiver(
  options: { readonly port?: number; readonly answers?: Readonly<Record<string, readonly ReceiverAnswer[]>> } = {},
): Promise<Receiver> {
  const requests: ReceivedRequest[] = [];
  const scripts = new Map<string, ReceiverAnswer[]>();
  const waiters = new Set<() => void>();

  const server = createServer((incoming, response) => {
    const arrivedAtMs = Date.now();
    const chunks: Buffer[] = [];
    incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
    incoming.on("error", () => undefined);
    incoming.on("end", () => {
      requests.push(toReceived(incoming, Buffer.concat(chunks), arrivedAtMs));
      for (const look of waiters) look();
      const path = (incoming.url ?? "/").split("?")[0] ?? "/";
      void answer(nextAnswer(scripts.get(path)), incoming, response);
    });
  });
  // A hung answer must not be ended by the server's own patience.
  server.requestTimeout = 0;

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ port: options.port ?? 0, host: "127.0.0.1" }, resolve);
  });
  const { port } = server.address() as AddressInfo;

  function script(path: string, answers: readonly ReceiverAnswer[]): void {
    scripts.set(path, [...answers]);
  }
  for (const [path, answers] of Object.entries(options.answers ?? {})) script(path, answers);

  async function waitForCount(
    count: number,
    match: (request: ReceivedRequest) => boolean = () => true,
    timeoutMs = PATIENCE_MS,
  ): Promise<readonly ReceivedRequest[]> {
    let stopLooking = () => undefined as void;
    const found = new Promise<readonly ReceivedRequest[]>((resolve) => {
      const look = () => {
        const matching = requests.filter(match);
        if (matching.length >= count) resolve(matching.slice(0, count));
      };
      waiters.add(look);
      stopLooking = () => void waiters.delete(look);
      look();
    });
    try {
      return await withTimeout(found, timeoutMs, () => `${count} requests; came so far: ${describe(requests)}`);
    } finally {
      stopLooking();
    }
  }

  return {
    url: `http://127.0.0.1:${port}`,
    hostPort: `127.0.0.1:${port}`,
    requests,
    script,
    waitForCount,
    async waitFor(match, timeoutMs = PATIENCE_MS) {
      const [request] = await waitForCount(1, match, timeoutMs);
      if (request === undefined) throw new Error("unreachable: one request was asked for");
      return request;
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

function nextAnswer(script: ReceiverAnswer[] | undefined): ReceiverAnswer {
  const [first, second] = script ?? [];
  if (second !== undefined) script?.shift();
  return first ?? 204;
}

async function answer(given: ReceiverAnswer, incoming: IncomingMessage, response: ServerResponse): Promise<void> {
  if (given === "HANG") return;
  if (given === "RESET") {
    incoming.socket.resetAndDestroy();
    return;
  }
  if (typeof given === "number") {
    response.writeHead(given).end();
    return;
  }
  await given.until;
  response.writeHead(given.status, given.headers).end(given.body);
}

function toReceived(incoming: IncomingMessage, body: Buffer, arrivedAtMs: number): ReceivedRequest {
  const headers: [string, string][] = [];
  for (let i = 0; i + 1 < incoming.rawHeaders.length; i += 2) {
    headers.push([incoming.rawHeaders[i] ?? "", incoming.rawHeaders[i + 1] ?? ""]);
  }
  return {
    method: incoming.method ?? "",
    path: incoming.url ?? "",
    headers,
    body,
    arrivedAtMs,
    header: (name) => headers.find(([given]) => given.toLowerCase() === name.toLowerCase())?.[1],
  };
}

function describe(requests: readonly ReceivedRequest[]): string {
  return requests.length === 0 ? "none" : requests.map(({ method, path }) => `${method} ${path}`).join(", ");
}
