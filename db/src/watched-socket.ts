import { connect, type Socket } from "node:net";

/** Where to connect, as postgres.js has parsed it from the URL. */
export type WatchedTarget = {
  readonly host: readonly string[];
  readonly port: readonly number[];
  readonly path?: string | false;
};

/** How often a connection is looked at. */
const LOOK_MS = 250;

/**
 * A connection to Postgres that is destroyed when a request stays unanswered for `answerTimeoutMs`. The server ends slow
 * statements by itself, so this is for one that is stopped or cut off without a word: there its limits don't reach us, and
 * a statement would wait for TCP to give up, minutes later. Statements then fail as in any outage and the pool dials anew.
 * With TLS the watch ends at the handshake, whose socket postgres.js makes itself; keepalive remains.
 */
export function openWatchedSocket(target: WatchedTarget, attempt: number, answerTimeoutMs: number): Socket {
  const index = attempt % target.host.length;
  const host = target.host[index] ?? "127.0.0.1";
  const port = target.port[index] ?? 5_432;
  const socket = typeof target.path === "string" ? connect({ path: target.path }) : connect({ host, port });
  watch(socket, answerTimeoutMs);
  // postgres.js reads the TLS name from here.
  return Object.assign(socket, { host, port });
}

function watch(socket: Socket, answerTimeoutMs: number): void {
  /** The first request since the last answer; null: nothing is owed. */
  let askedAt: number | null = null;
  const write = socket.write.bind(socket);
  socket.write = ((...args: Parameters<typeof write>) => {
    askedAt ??= performance.now();
    return write(...args);
  }) as typeof socket.write;
  const timer = setInterval(() => {
    if (askedAt === null || performance.now() - askedAt < answerTimeoutMs) return;
    socket.destroy(Object.assign(new Error("Postgres does not answer"), { code: "ETIMEDOUT" }));
  }, LOOK_MS);
  timer.unref();
  // Not by an event: postgres.js takes all listeners off when it is done with a socket.
  const push = socket.push.bind(socket);
  socket.push = (chunk: unknown, encoding?: BufferEncoding) => {
    askedAt = null;
    if (chunk === null) clearInterval(timer);
    return push(chunk, encoding);
  };
  const destroy = socket._destroy.bind(socket);
  socket._destroy = (error, callback) => {
    clearInterval(timer);
    destroy(error, callback);
  };
}
