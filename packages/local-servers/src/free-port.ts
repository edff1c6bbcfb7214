import { createServer } from "node:net";

/**
 * A TCP port of 127.0.0.1 that was free a moment ago. Nothing reserves it: a server that gets it may still find it
 * taken, so a caller that starts one tries again with another.
 */
export function findFreePort(): Promise<number> {
  return listenOnce(0);
}

/** Whether 127.0.0.1:`port` can be listened on now. */
export function isPortFree(port: number): Promise<boolean> {
  return listenOnce(port).then(
    () => true,
    () => false,
  );
}

function listenOnce(port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => {
      const address = server.address();
      const bound = typeof address === "object" && address !== null ? address.port : port;
      server.close(() => resolve(bound));
    });
  });
}
