import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Resolver } from "../dns/resolver.ts";
import { createTargetResolver } from "../transport/resolve-target.ts";
import type { Stop } from "../transport/stop.ts";
import { forwardRequest } from "./forward-request.ts";
import { forwardTunnel } from "./forward-tunnel.ts";
import { createProxyJob, type ProxyJob } from "./proxy-job.ts";
import type { ReachParts } from "./reach-target.ts";

/** The one way that a browser of ours has into the network. */
export type ForwardProxy = {
  /** On 127.0.0.1. */
  readonly port: number;
  /** Lets a page in, with at most `budgetBytes` both ways, until the job is closed. */
  openJob(stop: Stop, budgetBytes: number): ProxyJob;
  /** Sockets towards targets that are open or being dialled. */
  sockets(): number;
  /** Closes the port and every socket. Idempotent. */
  close(): Promise<void>;
};

/** What a forward proxy is made of. */
export type ForwardProxyOptions = Omit<ReachParts, "resolveTarget"> & { readonly resolver: Resolver };

/** Cookies make requests longer than responses' heads. */
const REQUEST_HEAD_BYTES_MAX = 64 * 1024;

/** Sockets of browsers, and of whoever else finds the port. */
const CLIENTS_MAX = 2_048;

/**
 * A proxy on a free loopback port that serves nobody but the jobs it was asked to open, each by its own credentials. What it
 * does for them obeys the address policy, connection by connection. The browser's own calls home have no credentials.
 */
export async function openForwardProxy({ resolver, ...others }: ForwardProxyOptions): Promise<ForwardProxy> {
  const { policy, limits } = others;
  const parts: ReachParts = { ...others, resolveTarget: createTargetResolver({ resolver, policy, limits }) };
  const jobs = new Map<string, ProxyJob>();
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  let closing: Promise<void> | undefined;

  const server = createServer({
    maxHeaderSize: REQUEST_HEAD_BYTES_MAX,
    insecureHTTPParser: false,
    // A page's request body may take as long as its job does; its socket is closed with it.
    requestTimeout: 0,
  });
  server.maxConnections = CLIENTS_MAX;
  const jobOf = (request: IncomingMessage): ProxyJob | undefined => {
    const [scheme = "", token = ""] = (request.headers["proxy-authorization"] ?? "").split(" ");
    return scheme.toLowerCase() === "basic" ? jobs.get(token) : undefined;
  };
  const noteUpstream = (raw: Socket): void => {
    upstreams.add(raw);
    raw.once("close", () => upstreams.delete(raw));
  };

  server.on("connection", (socket: Socket) => {
    clients.add(socket);
    socket.on("error", () => socket.destroy());
    socket.once("close", () => clients.delete(socket));
  });
  server.on("request", (request: IncomingMessage, response: ServerResponse) => {
    const job = jobOf(request);
    if (job === undefined) {
      response.writeHead(407, { ...CHALLENGE, "Content-Length": 0, Connection: "close" }).end();
      return;
    }
    job.adopt(request.socket);
    void forwardRequest(request, response, { job, noteUpstream }, parts).catch(() => {
      request.socket.destroy();
    });
  });
  server.on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
    const job = jobOf(request);
    if (job === undefined) {
      client.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${CHALLENGE_LINE}\r\n${NO_BODY}`);
      return;
    }
    job.adopt(request.socket);
    void forwardTunnel(request.url ?? "", { client: request.socket, head }, { job, noteUpstream }, parts).catch(() => {
      request.socket.destroy();
    });
  });
  server.on("clientError", (_error, socket) => socket.destroy());

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the forward proxy has no port");

  return {
    port: address.port,
    openJob(stop, budgetBytes) {
      const job = createProxyJob(stop, budgetBytes, () => {
        jobs.delete(token);
      });
      const { username, password } = job.credentials;
      const token = Buffer.from(`${username}:${password}`).toString("base64");
      jobs.set(token, job);
      return job;
    },
    sockets: () => upstreams.size,
    close() {
      closing ??= new Promise((resolve) => {
        for (const job of jobs.values()) job.close();
        server.close(() => {
          resolve();
        });
        for (const socket of [...clients, ...upstreams]) socket.destroy();
      });
      return closing;
    },
  };
}

const CHALLENGE = { "Proxy-Authenticate": 'Basic realm="render"' } as const;
const CHALLENGE_LINE = 'Proxy-Authenticate: Basic realm="render"';
const NO_BODY = "Content-Length: 0\r\nConnection: close\r\n\r\n";
