import { createHash, timingSafeEqual } from "node:crypto";
import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import type { AnyRouter } from "@trpc/server";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { type Context, Hono } from "hono";
import { bodyLimit } from "hono/body-limit";
import { v7 as uuidv7 } from "uuid";
import { SYSTEM_CLOCK } from "./clock.ts";
import type { Component } from "./component.ts";
import { createDeadline } from "./deadline.ts";
import { type HealthCheck, runHealthChecks } from "./health.ts";
import { closeServer, listenAt } from "./http-listener.ts";
import { type CallContext, DEADLINE_HEADER, REQUEST_ID_HEADER } from "./internal-trpc.ts";
import type { Logger } from "./logger.ts";

/** The largest internal request: a public batch is at most 4 MiB, and grows by its escapes and defaults. */
const BODY_BYTES_MAX = 16 * 1_024 * 1_024;
/** A call that names no deadline has this long. */
const DEFAULT_DEADLINE_MS = 30_000;
/** The longest deadline taken at its word: a waiting read is at most a minute. */
const DEADLINE_MS_MAX = 600_000;
/** Longer than the clients' 4 s, so that it is the client who closes an idle connection. */
const KEEP_ALIVE_MS = 65_000;

/** A well-formed request id: 1 to 128 of a plain alphabet. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/u;

/** An internal server. `port` and `url` are known once it has started; before, they throw. */
export type InternalServer = Component & { readonly port: number; readonly url: string };

/**
 * Serves a router to the deployment's other processes at `/trpc`, which wants the service token, and health at `/healthz`
 * (alive) and `/readyz` (503 while a check is down or the server is stopping). `port` 0 takes any free one; `host` is
 * the loopback address when absent. Stop lets calls in flight end until the deadline, then cuts them.
 */
export function createInternalServer<C extends object>(options: {
  readonly name: string;
  readonly port: number;
  readonly host?: string;
  readonly router: AnyRouter;
  readonly context: C;
  readonly serviceToken: string;
  readonly checks: readonly HealthCheck[];
  readonly logger: Logger;
}): InternalServer {
  const { name, logger } = options;
  const host = options.host ?? "127.0.0.1";
  const tokenDigest = digest(options.serviceToken);
  let isStopping = false;
  let server: Server | undefined;
  let stopping: Promise<void> | undefined;

  const app = new Hono();
  app.get("/healthz", (c) => c.json({ status: "ok" }));
  app.get("/readyz", async (c) => {
    const report = await runHealthChecks(options.checks);
    const status = isStopping ? "down" : report.status;
    return c.json({ ...report, status }, status === "down" ? 503 : 200);
  });
  app.use("/trpc/*", async (c, next) => {
    const given = /^Bearer (.+)$/u.exec(c.req.header("authorization") ?? "")?.[1];
    // Digests have one length, so the comparison takes the same time whatever was sent.
    if (given === undefined || !timingSafeEqual(digest(given), tokenDigest)) {
      return c.json({ error: "unauthenticated" }, 401);
    }
    return next();
  });
  app.use("/trpc/*", bodyLimit({ maxSize: BODY_BYTES_MAX, onError: (c) => c.json({ error: "too large" }, 413) }));
  app.all("/trpc/*", handleCall);
  app.notFound((c) => c.json({ error: "not found" }, 404));
  app.onError((error, c) => {
    logger.error({ server: name, err: error }, "call.faulted");
    return c.json({ error: "internal" }, 500);
  });

  async function handleCall(c: Context): Promise<Response> {
    const remainingMs = readRemainingMs(c.req.header(DEADLINE_HEADER));
    if (remainingMs === undefined) {
      return c.json({ error: "malformed deadline" }, 400);
    }
    const sent = c.req.header(REQUEST_ID_HEADER);
    const requestId = sent !== undefined && REQUEST_ID.test(sent) ? sent : uuidv7();
    const deadline = createDeadline(remainingMs, SYSTEM_CLOCK, c.req.raw.signal);
    const call: CallContext = {
      requestId,
      deadlineAt: SYSTEM_CLOCK.wallMs() + remainingMs,
      signal: deadline.signal,
      logger,
    };
    try {
      return await fetchRequestHandler({
        endpoint: "/trpc",
        req: c.req.raw,
        router: options.router,
        allowMethodOverride: true,
        createContext: () => ({ ...options.context, ...call }),
      });
    } finally {
      deadline.dispose();
    }
  }

  function address(): { port: number } {
    const bound = server?.address();
    if (typeof bound !== "object" || bound === null) {
      throw new Error(`${name} is not listening`);
    }
    return bound;
  }

  return {
    name,
    get port() {
      return address().port;
    },
    get url() {
      return `http://${host.includes(":") ? `[${host}]` : host}:${address().port}`;
    },
    async start(signal) {
      signal.throwIfAborted();
      const created = createAdaptorServer({ fetch: app.fetch }) as Server;
      created.keepAliveTimeout = KEEP_ALIVE_MS;
      created.headersTimeout = KEEP_ALIVE_MS + 1_000;
      await listenAt(created, { host, port: options.port });
      server = created;
      logger.info({ server: name, port: address().port }, "server.started");
    },
    stop(deadline) {
      isStopping = true;
      stopping ??= server ? closeServer(server, deadline) : Promise.resolve();
      return stopping;
    },
  };
}

function readRemainingMs(header: string | undefined): number | undefined {
  if (header === undefined) {
    return DEFAULT_DEADLINE_MS;
  }
  return /^-?\d{1,12}$/u.test(header) ? Math.min(Number(header), DEADLINE_MS_MAX) : undefined;
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
