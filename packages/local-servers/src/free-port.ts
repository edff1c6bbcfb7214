import { randomInt } from "node:crypto";
import { createServer } from "node:net";
import { LocalServerError } from "./local-server-error.ts";

/** Below the ranges that systems take outgoing ports from (Linux 32768, macOS 49152): a server that restarts finds its port free. */
const PORTS = { from: 20_000, count: 12_000, tries: 100 };

/** Where this process looks next: from a random place on, each port once, so that it never hands out one port twice. */
let next = randomInt(PORTS.count);

/**
 * A TCP port of 127.0.0.1 that was free a moment ago, and that this process was not given before. Nothing reserves it: a
 * server that gets it may still find it taken by another process.
 */
export async function findFreePort(): Promise<number> {
  for (let tries = 0; tries < PORTS.tries; tries++) {
    const port = PORTS.from + next;
    next = (next + 1) % PORTS.count;
    if (await isPortFree(port)) return port;
  }
  throw new LocalServerError("PORT_TAKEN", `No free port was found from ${PORTS.from} to ${PORTS.from + PORTS.count}`);
}

/** Whether 127.0.0.1:`port` can be listened on now. */
export function isPortFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(true)));
  });
}
