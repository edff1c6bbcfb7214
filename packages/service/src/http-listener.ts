import type { Server } from "node:http";

/** Listens at `host`:`port` (0: any free one). Rejects with the server's error when it can't. */
export async function listenAt(server: Server, at: { readonly host: string; readonly port: number }): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: at.host, port: at.port }, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

/**
 * Takes no new connection, closes idle ones, and resolves when all are closed: by themselves until `deadline` (on the
 * `performance.now()` scale), then by force.
 */
export async function closeServer(server: Server, deadline: number): Promise<void> {
  const closed = new Promise<void>((resolve) => {
    server.close(() => resolve());
  });
  server.closeIdleConnections();
  const timer = setTimeout(() => server.closeAllConnections(), Math.max(0, deadline - performance.now()));
  await closed;
  clearTimeout(timer);
}
