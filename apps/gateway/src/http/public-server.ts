import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { getRequestListener } from "@hono/node-server";
import { localFailure, toErrorEnvelope } from "@keble-scraper/contract";
import { closeServer, type Component, listenAt, type Logger } from "@keble-scraper/service";

/** How long a request's head may take to arrive, and all of it: a slow sender holds a socket no longer. Looked at each second. */
const TIMEOUTS = { headersMs: 10_000, requestMs: 30_000, checkMs: 1_000 };
/** Longer than the 60 s that load balancers keep a connection for, so that it is they who close it. */
const KEEP_ALIVE_MS = 65_000;
/** The largest head, in bytes. */
const HEAD_BYTES_MAX = 16_384;
/**
 * Open answers on one connection. Node starts every request it has parsed, and a chunk of 64 KiB holds a thousand of them;
 * an HTTP client that pipelines at all keeps fewer than ten on their way.
 */
const OPEN_ANSWERS_MAX = 16;

/** The public listener. `url` throws before it has started. */
export type PublicServer = Component & { readonly url: string };

/**
 * Serves `fetch` at `host`:`port` (0: any free one). What is no HTTP, or comes too slowly, is answered with the envelope
 * too. A connection with more open answers than it may have is closed. `stopping` is called once as the stop begins; requests in flight may end until its deadline, then they are cut.
 */
export function createPublicServer(options: {
  readonly host: string;
  readonly port: number;
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly stopping: () => void;
  readonly logger: Logger;
  /** Absent: the module's own. */
  readonly timeouts?: { readonly headersMs: number; readonly requestMs: number; readonly checkMs: number };
}): PublicServer {
  const timeouts = options.timeouts ?? TIMEOUTS;
  // Its own error handler sees only what can't be made into a request: no host, no URL.
  const listener = getRequestListener(options.fetch, { errorHandler: () => malformed() });
  const openAnswers = new WeakMap<Duplex, number>();
  const take = (incoming: IncomingMessage, outgoing: ServerResponse): void => {
    const { socket } = incoming;
    const open = (openAnswers.get(socket) ?? 0) + 1;
    // The rest of a chunk is still parsed after its socket was closed: it ends here too.
    if (open > OPEN_ANSWERS_MAX) {
      socket.destroy();
      return;
    }
    openAnswers.set(socket, open);
    outgoing.once("close", () => openAnswers.set(socket, (openAnswers.get(socket) ?? 1) - 1));
    void listener(incoming, outgoing);
  };
  let server: Server | undefined;
  let stop: Promise<void> | undefined;
  return {
    name: "public-server",
    get url() {
      const bound = server?.address();
      if (typeof bound !== "object" || bound === null) {
        throw new Error("the gateway is not listening");
      }
      return `http://${options.host.includes(":") ? `[${options.host}]` : options.host}:${bound.port}`;
    },
    async start(signal) {
      signal.throwIfAborted();
      const created = createServer(
        {
          headersTimeout: timeouts.headersMs,
          requestTimeout: timeouts.requestMs,
          connectionsCheckingInterval: timeouts.checkMs,
          keepAliveTimeout: KEEP_ALIVE_MS,
          maxHeaderSize: HEAD_BYTES_MAX,
          // Node's own refusal would be without an envelope; the listener's is not.
          requireHostHeader: false,
        },
        take,
      );
      created.on("clientError", answerClientError);
      // An `Expect` we do not know is passed over, as RFC 9110 (10.1.1) allows.
      created.on("checkExpectation", take);
      await listenAt(created, options);
      server = created;
      options.logger.info({ url: this.url }, "server.started");
    },
    stop(deadline) {
      stop ??= (options.stopping(), server === undefined ? Promise.resolve() : closeServer(server, deadline));
      return stop;
    },
  };
}

function malformed(): Response {
  const requestId = randomUUID();
  return Response.json(toErrorEnvelope(localFailure("INVALID_REQUEST"), { requestId }), {
    status: 400,
    headers: { "x-request-id": requestId, connection: "close" },
  });
}

/** The two status lines that say more than 400, by Node's codes. */
const STATUS_LINES: Readonly<Record<string, string>> = {
  HPE_HEADER_OVERFLOW: "431 Request Header Fields Too Large",
  ERR_HTTP_REQUEST_TIMEOUT: "408 Request Timeout",
};

/** Node keeps the answer in progress here; its own handler of these errors reads the same field. */
type HttpSocket = Duplex & { readonly _httpMessage?: { readonly headersSent: boolean } | null };

function answerClientError(error: Error & { code?: string }, socket: HttpSocket): void {
  // Nobody is there to read, or bytes of an answer are on their way already.
  if (!socket.writable || error.code === "ECONNRESET" || socket._httpMessage?.headersSent === true) {
    socket.destroy();
    return;
  }
  const requestId = randomUUID();
  const body = JSON.stringify(toErrorEnvelope(localFailure("INVALID_REQUEST"), { requestId }));
  const head = [
    `HTTP/1.1 ${STATUS_LINES[error.code ?? ""] ?? "400 Bad Request"}`,
    "content-type: application/json",
    `content-length: ${Buffer.byteLength(body)}`,
    `x-request-id: ${requestId}`,
    "connection: close",
  ];
  socket.end(`${head.join("\r\n")}\r\n\r\n${body}`);
}
