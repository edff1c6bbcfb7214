import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Webhook } from "standardwebhooks";

/** A callback as it arrived. `isVerified`: its signature is right for the secret that was given. */
export type ReceivedCallback = {
  readonly eventId: string;
  readonly type: string;
  readonly jobId: string;
  readonly isVerified: boolean;
  readonly arrivedAtMs: number;
};

/** The stack's own little site to fetch from, and the receiver of its callbacks. Both listen on 127.0.0.1. */
export type SampleSite = {
  readonly originUrl: string;
  readonly originHostPort: string;
  readonly receiverUrl: string;
  readonly receiverHostPort: string;
  readonly originPort: number;
  readonly receiverPort: number;
  /** Callbacks are verified with this secret from now on. */
  expectSecret(secret: string): void;
  /** The first callback for the job; rejects when the signal aborts. */
  waitForCallback(jobId: string, signal: AbortSignal): Promise<ReceivedCallback>;
  close(): Promise<void>;
};

const BODY_BYTES_MAX = 1024 * 1024;
const KEPT_CALLBACKS = 100;

const PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Sample page</title></head>
<body><h1>Sample page</h1><p>Served by the local stack, so that a first job needs no network.</p>
<p><a href="/moved">A link that redirects here</a></p></body></html>
`;

/** Starts both; a port of 0 takes any. */
export async function startSampleSite(ports: {
  readonly origin: number;
  readonly receiver: number;
}): Promise<SampleSite> {
  const received: ReceivedCallback[] = [];
  const listeners = new Set<() => void>();
  let secret: string | null = null;

  const origin = await listen(ports.origin, answerPage);
  const receiver = await listen(ports.receiver, (request, response) => {
    void readBody(request).then((body) => {
      const callback = body === null ? null : toCallback(body, request, secret);
      response.writeHead(callback === null ? 400 : 204).end();
      if (callback === null) return;
      received.push(callback);
      if (received.length > KEPT_CALLBACKS) received.shift();
      for (const listener of listeners) listener();
    });
  });
  const [originPort, receiverPort] = [portOf(origin), portOf(receiver)];

  return {
    originPort,
    receiverPort,
    originUrl: `http://127.0.0.1:${originPort}`,
    originHostPort: `127.0.0.1:${originPort}`,
    receiverUrl: `http://127.0.0.1:${receiverPort}/callbacks`,
    receiverHostPort: `127.0.0.1:${receiverPort}`,
    expectSecret(given) {
      secret = given;
    },
    waitForCallback(jobId, signal) {
      return new Promise((resolve, reject) => {
        const end = () => {
          listeners.delete(look);
          signal.removeEventListener("abort", giveUp);
        };
        const look = () => {
          const found = received.find((callback) => callback.jobId === jobId);
          if (found === undefined) return;
          end();
          resolve(found);
        };
        const giveUp = () => {
          end();
          reject(signal.reason instanceof Error ? signal.reason : new Error("No callback came in time"));
        };
        listeners.add(look);
        signal.addEventListener("abort", giveUp, { once: true });
        look();
        if (signal.aborted) giveUp();
      });
    },
    async close() {
      await Promise.all([closeServer(origin), closeServer(receiver)]);
    },
  };
}

function answerPage(request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? "/").split("?")[0];
  if (path === "/") response.writeHead(200, { "content-type": "text/html; charset=utf-8" }).end(PAGE);
  else if (path === "/moved") response.writeHead(302, { location: "/" }).end();
  else if (path === "/robots.txt")
    response.writeHead(200, { "content-type": "text/plain" }).end("User-agent: *\nAllow: /\n");
  else response.writeHead(404, { "content-type": "text/plain" }).end("There is no such page.\n");
}

async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size > BODY_BYTES_MAX) return null;
      chunks.push(chunk);
    }
  } catch {
    return null;
  }
  return Buffer.concat(chunks);
}

function toCallback(body: Buffer, request: IncomingMessage, secret: string | null): ReceivedCallback | null {
  const text = body.toString("utf8");
  const event = parseEvent(text);
  if (event === null) return null;
  return { ...event, isVerified: secret !== null && isSigned(text, request, secret), arrivedAtMs: Date.now() };
}

function isSigned(text: string, request: IncomingMessage, secret: string): boolean {
  const headers: Record<string, string> = {};
  for (const name of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
    const value = request.headers[name];
    if (typeof value === "string") headers[name] = value;
  }
  try {
    new Webhook(secret).verify(text, headers);
    return true;
  } catch {
    return false;
  }
}

function parseEvent(text: string): { eventId: string; type: string; jobId: string } | null {
  let event: unknown;
  try {
    event = JSON.parse(text);
  } catch {
    return null;
  }
  if (typeof event !== "object" || event === null || !("id" in event && "type" in event)) return null;
  const { id: eventId, type } = event;
  if (typeof eventId !== "string" || typeof type !== "string") return null;
  const job =
    "data" in event && typeof event.data === "object" && event.data !== null && "job" in event.data
      ? event.data.job
      : null;
  const jobId = typeof job === "object" && job !== null && "id" in job && typeof job.id === "string" ? job.id : "";
  return { eventId, type, jobId };
}

function listen(port: number, handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer(handle);
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, () => resolve(server));
  });
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

async function closeServer(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  server.closeAllConnections();
  await closed;
}
