import { type Server, type Socket, createServer } from "node:net";
import { type TlsOptions, TLSSocket, createServer as createTlsServer } from "node:tls";
import { createWatch } from "../create-watch.ts";
import { type OriginBehaviour, createOriginReply } from "./origin-reply.ts";
import { type OriginRequest, parseRequestHead } from "./origin-request.ts";

/** How an origin answers. */
export type OriginOptions = {
  /** By path, without the query. What is not listed answers 404. */
  readonly paths?: Readonly<Record<string, OriginBehaviour>>;
  /** Called for each accepted (with TLS: secured) connection before anything is read; returning "TAKEN" keeps HTTP away. */
  readonly onConnection?: (socket: Socket) => "TAKEN" | "SERVE";
  /** Speaks TLS with these options; see `TLS_FIXTURES`. */
  readonly tls?: TlsOptions;
};

/** A raw server on 127.0.0.1 that writes bytes by hand: Node's `http` module would repair what tests want broken. */
export type Origin = AsyncDisposable & {
  readonly port: number;
  /** Accepted TCP connections since the start. */
  connections(): number;
  /** Connections that are open now, oldest first; with TLS, the sockets below it. */
  sockets(): readonly Socket[];
  /** Resolves when no connection is open. */
  allClosed(): Promise<void>;
  /** Every request read so far, oldest first. */
  readonly requests: readonly OriginRequest[];
  /** Resolves with the n-th request, counted from 1. */
  request(ordinal: number): Promise<OriginRequest>;
  /** Sets or replaces the behaviour of a path. */
  on(path: string, behaviour: OriginBehaviour): void;
  stop(): Promise<void>;
};

const HEAD_END = "\r\n\r\n";

/** Starts an origin on a free port. */
export async function startOrigin(options: OriginOptions = {}): Promise<Origin> {
  const paths = new Map(Object.entries(options.paths ?? {}));
  const requests: OriginRequest[] = [];
  const open = new Set<Socket>();
  const { changed, until } = createWatch();
  let connections = 0;

  const serve = (socket: Socket, connection: number): void => {
    // Peers reset and vanish by design; each behaviour sees it as `closed`.
    socket.on("error", () => {});
    const closed = new Promise<void>((resolve) => {
      socket.once("close", () => {
        resolve();
      });
    });
    if (options.onConnection?.(socket) === "TAKEN") {
      // A socket that nobody reads never notices that its peer closed.
      socket.resume();
      return;
    }
    const serverName = socket instanceof TLSSocket ? readServerName(socket) : null;
    readRequests(socket, async (head, body) => {
      const request: OriginRequest = { ...parseRequestHead(head), body, connection, serverName };
      requests.push(request);
      changed();
      const reply = createOriginReply(request, socket, closed);
      const behaviour = paths.get(request.path);
      await (behaviour === undefined
        ? reply.send({ status: 404, reason: "Not Found", body: "absent" })
        : behaviour(reply));
    });
  };

  const server: Server = options.tls === undefined ? createServer() : createTlsServer(options.tls);
  server.on("connection", (socket: Socket) => {
    connections += 1;
    open.add(socket);
    socket.on("error", () => {});
    socket.once("close", () => {
      open.delete(socket);
      changed();
    });
    changed();
  });
  server.on("tlsClientError", () => {});
  server.on(options.tls === undefined ? "connection" : "secureConnection", (socket: Socket) => {
    serve(socket, connections);
  });

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the origin has no port");

  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => {
    stopping ??= new Promise<void>((resolve) => {
      server.close(() => {
        resolve();
      });
      for (const socket of open) socket.destroy();
    });
    return stopping;
  };
  return {
    port: address.port,
    connections: () => connections,
    sockets: () => [...open],
    allClosed: () => until(() => (open.size === 0 ? true : undefined)).then(() => {}),
    requests,
    request: (ordinal) => until(() => requests[ordinal - 1]),
    on(path, behaviour) {
      paths.set(path, behaviour);
    },
    stop,
    [Symbol.asyncDispose]: stop,
  };
}

function readServerName(socket: TLSSocket): string | null {
  // Node types `servername` on the server's side only loosely: false when the client sent none.
  const { servername } = socket as unknown as { readonly servername?: string | false };
  return typeof servername === "string" && servername !== "" ? servername : null;
}

/** Reads requests one after the other: the next one once the last was answered. */
function readRequests(socket: Socket, answer: (head: string, body: Buffer) => Promise<void>): void {
  let buffered: Buffer = Buffer.alloc(0);
  let isAnswering = false;
  const next = (): void => {
    if (isAnswering) return;
    const end = buffered.indexOf(HEAD_END);
    if (end === -1) return;
    const head = buffered.subarray(0, end).toString("latin1");
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
    const bodyAt = end + HEAD_END.length;
    if (buffered.length < bodyAt + length) return;
    const body = buffered.subarray(bodyAt, bodyAt + length);
    buffered = buffered.subarray(bodyAt + length);
    isAnswering = true;
    answer(head, body).then(
      () => {
        isAnswering = false;
        next();
      },
      (error: unknown) => {
        socket.destroy(error instanceof Error ? error : new Error(String(error)));
      },
    );
  };
  socket.on("data", (chunk: Buffer) => {
    buffered = Buffer.concat([buffered, chunk]);
    next();
  });
}
