import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** A server of plain HTTP on 127.0.0.1 that can go down and come back on its port. */
export type HttpListener = {
  /** The port; 0 before the first start without one. */
  readonly port: number;
  start(): Promise<void>;
  stop(): Promise<void>;
  connections(): number;
};

/** Not started yet. Requests with `Expect: 100-continue` come in without having been answered. */
export function createHttpListener(
  wantedPort: number,
  serve: (incoming: IncomingMessage, response: ServerResponse) => Promise<void>,
): HttpListener {
  const open = new Set<Socket>();
  let port = wantedPort;
  let server: Server | undefined;

  function create(): Server {
    const listener = (incoming: IncomingMessage, response: ServerResponse): void => {
      const { socket } = incoming;
      serve(incoming, response).catch((error: unknown) => {
        socket.destroy();
        throw error;
      });
    };
    const created = createServer({ noDelay: true }, listener);
    created.on("checkContinue", listener);
    // A slow sender is a test's business, not the server's.
    created.requestTimeout = 0;
    created.on("connection", (socket) => {
      open.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => open.delete(socket));
    });
    return created;
  }

  return {
    get port() {
      return port;
    },
    async start() {
      if (server !== undefined) return;
      const created = create();
      await new Promise<void>((resolve, reject) => {
        created.once("error", reject);
        created.listen({ port, host: "127.0.0.1" }, resolve);
      });
      server = created;
      const address = created.address();
      if (typeof address === "object" && address !== null) port = address.port;
    },
    async stop() {
      const stopping = server;
      if (stopping === undefined) return;
      server = undefined;
      const closed = new Promise<void>((resolve) => stopping.close(() => resolve()));
      for (const socket of open) socket.destroy();
      await closed;
    },
    connections: () => open.size,
  };
}
