import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { createWatch } from "../create-watch.ts";

/** One call as it came in. */
export type ProviderCall = {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly body: Buffer;
  /** Milliseconds since the epoch, when the body was complete. */
  readonly arrivedAtMs: number;
};

/**
 * An answer that is no part of the protocol, or a part of it that a test dictates. RESET cuts the connection without an
 * answer, HANG never answers, STALL sends a head and half a body.
 */
export type ScriptedAnswer =
  | "RESET"
  | "HANG"
  | "STALL"
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string | Buffer;
    };

/** A real HTTP server on 127.0.0.1. */
export type ProviderServer = AsyncDisposable & {
  /** `http://127.0.0.1:port`. */
  readonly url: string;
  readonly port: number;
  readonly calls: readonly ProviderCall[];
  /** Open connections now. */
  connections(): number;
  /** Resolves when no connection is open. */
  allClosed(): Promise<void>;
  /** Resolves with the n-th call, counted from 1. */
  call(ordinal: number): Promise<ProviderCall>;
};

/** Starts a server that answers each call, once its body is there, by `answer`. */
export async function startProviderServer(
  answer: (call: ProviderCall) => ScriptedAnswer | Promise<ScriptedAnswer>,
): Promise<ProviderServer> {
  const calls: ProviderCall[] = [];
  const open = new Set<Socket>();
  const { changed, until } = createWatch();

  const server = createServer((incoming, response) => {
    readBody(incoming).then(
      async (body) => {
        const call: ProviderCall = {
          method: incoming.method ?? "",
          path: incoming.url ?? "/",
          headers: incoming.headers,
          body,
          arrivedAtMs: Date.now(),
        };
        calls.push(call);
        changed();
        send(await answer(call), incoming, response);
      },
      // The caller hung up while it was sending.
      () => undefined,
    );
  });
  // A hung answer must not be ended by the server's own patience.
  server.requestTimeout = 0;
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => {
      open.delete(socket);
      changed();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    calls,
    connections: () => open.size,
    allClosed: () => until(() => (open.size === 0 ? true : undefined)).then(() => undefined),
    call: (ordinal) => until(() => calls[ordinal - 1]),
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => {
        server.close(() => {
          resolve();
        });
      });
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A call's body as a JSON object; null when it is none. */
export function readObject({ body }: ProviderCall): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Readonly<Record<string, unknown>>) : null;
  } catch {
    return null;
  }
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

function send(answer: ScriptedAnswer, incoming: IncomingMessage, response: ServerResponse): void {
  if (answer === "HANG") return;
  if (answer === "RESET") {
    incoming.socket.resetAndDestroy();
    return;
  }
  if (answer === "STALL") {
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": "1000",
      "x-brd-status-code": "200",
    });
    response.write('{"success":true,"result":"half');
    return;
  }
  response.writeHead(answer.status, answer.headers).end(answer.body);
}
