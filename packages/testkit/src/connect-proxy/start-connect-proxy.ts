import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { createWatch } from "../create-watch.ts";
import { type ConnectRequest, parseConnectRequest } from "./connect-request.ts";
import { headText, performAnswer } from "./perform-answer.ts";
import { brightDataRefusal, type ProxyAnswer } from "./proxy-answer.ts";

/**
 * - `to`: where tunnels lead, whatever they ask for: a port of 127.0.0.1, or by authority (null: nothing is there).
 * - `dialect`: in whose words it refuses; PLAIN is the default.
 * - `credentials`: absent means that none are asked for. For BRIGHT_DATA the user name without flags.
 * - `rule`: what to do about a CONNECT whose credentials are right; null or absent: open the tunnel.
 */
export type ConnectProxyOptions = {
  readonly to: number | ((authority: string) => number | null);
  readonly dialect?: "PLAIN" | "BRIGHT_DATA";
  readonly credentials?: { readonly userName: string; readonly password: string };
  readonly rule?: ProxyRule;
  /** What the zone may use, over all connections; then it answers 502 with client_10100. Absent: no limit. */
  readonly quota?: { readonly bytes?: number; readonly requests?: number };
};

export type ProxyRule = (request: ConnectRequest) => ProxyAnswer | null;

/** A CONNECT proxy on 127.0.0.1 that tunnels real bytes, and misbehaves when it is told to. */
export type ConnectProxy = AsyncDisposable & {
  readonly port: number;
  /** Its URL with its credentials, or with others. */
  url(credentials?: { readonly userName: string; readonly password: string }): string;
  /** Every request head that was read, oldest first, whatever was answered. */
  readonly asked: readonly ConnectRequest[];
  /** Accepted connections since the start. */
  connections(): number;
  /** Tunnels that were opened since the start. */
  tunnels(): number;
  /** Bytes on its clients' sockets since the start, both directions: what a supplier bills. */
  bytes(): number;
  /** Its clients' connections that are open now. */
  open(): number;
  /** Resolves when none is. */
  allClosed(): Promise<void>;
  /** Resolves with the n-th request, counted from 1. */
  request(ordinal: number): Promise<ConnectRequest>;
  /** Sets or replaces the rule; null: back to opening every tunnel. */
  setRule(rule: ProxyRule | null): void;
  /** Sets the quota anew, counted from now. */
  setQuota(quota: NonNullable<ConnectProxyOptions["quota"]>): void;
};

/** Starts a proxy on a free port. */
export async function startConnectProxy(options: ConnectProxyOptions): Promise<ConnectProxy> {
  const { credentials, dialect = "PLAIN" } = options;
  let rule = options.rule ?? null;
  let quota = options.quota ?? {};
  let usedBefore = { bytes: 0, requests: 0 };
  const asked: ConnectRequest[] = [];
  const clients = new Set<Socket>();
  const upstreams = new Set<Socket>();
  const { changed, until } = createWatch();
  let connections = 0;
  let tunnels = 0;
  let closedBytes = 0;

  const bytes = (): number => {
    let total = closedBytes;
    for (const client of clients) total += client.bytesRead + client.bytesWritten;
    return total;
  };
  const isSpent = (): boolean =>
    bytes() - usedBefore.bytes > (quota.bytes ?? Infinity) ||
    tunnels - usedBefore.requests >= (quota.requests ?? Infinity);

  const answerTo = (request: ConnectRequest): ProxyAnswer => {
    if (request.method !== "CONNECT") return { do: "REFUSE", status: 405, reason: "Method Not Allowed" };
    if (credentials !== undefined && !request.isAuthorized) return refuseCredentials(request, dialect);
    if (isSpent()) {
      return dialect === "BRIGHT_DATA"
        ? brightDataRefusal(502, "client_10100", "The zone has reached its usage limit")
        : { do: "REFUSE", status: 403, reason: "Quota Exceeded" };
    }
    return rule?.(request) ?? { do: "TUNNEL" };
  };

  const openTunnel = (client: Socket, request: ConnectRequest, answer: ProxyAnswer & { do: "TUNNEL" }): void => {
    const port = typeof options.to === "number" ? options.to : options.to(request.authority);
    const to = answer.to ?? (port === null ? null : { host: "127.0.0.1", port });
    const unreachable =
      dialect === "BRIGHT_DATA"
        ? brightDataRefusal(502, "target_40020", "Could not connect to the target")
        : ({ do: "REFUSE", status: 502, reason: "Bad Gateway" } as const);
    if (to === null) {
      perform(client, request, unreachable);
      return;
    }
    const upstream = connect({ ...to, noDelay: true });
    upstreams.add(upstream);
    let isOpen = false;
    upstream.on("error", () => {
      if (isOpen) client.destroy();
      else perform(client, request, unreachable);
    });
    upstream.once("close", () => {
      upstreams.delete(upstream);
      if (isOpen) client.destroySoon();
    });
    client.once("close", () => upstream.destroy());
    upstream.once("connect", () => {
      isOpen = true;
      tunnels += 1;
      const head = Buffer.concat([Buffer.from(headText(200, "OK", answer.headers)), Buffer.from(answer.glued ?? "")]);
      const pieces = answer.drip === true ? [...head].map((byte) => Buffer.from([byte])) : [head];
      void writeEach(client, pieces).then(() => {
        client.pipe(upstream);
        upstream.pipe(client);
      });
    });
  };

  const perform = (client: Socket, request: ConnectRequest, answer: ProxyAnswer): void => {
    if (answer.do === "TUNNEL") {
      openTunnel(client, request, answer);
      return;
    }
    performAnswer(client, answer);
  };

  const server = createServer((client) => {
    connections += 1;
    const connection = connections;
    clients.add(client);
    client.setNoDelay(true);
    client.on("error", () => {});
    client.once("close", () => {
      clients.delete(client);
      closedBytes += client.bytesRead + client.bytesWritten;
      changed();
    });
    readHead(client, (head) => {
      const request = parseConnectRequest(
        head,
        connection,
        (userName, password) => credentials?.userName === userName && credentials.password === password,
      );
      asked.push(request);
      perform(client, request, answerTo(request));
      changed();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const { port } = server.address() as AddressInfo;

  return {
    port,
    url(own = credentials) {
      const userInfo =
        own === undefined ? "" : `${encodeURIComponent(own.userName)}:${encodeURIComponent(own.password)}@`;
      return `http://${userInfo}127.0.0.1:${port}`;
    },
    asked,
    connections: () => connections,
    tunnels: () => tunnels,
    bytes,
    open: () => clients.size,
    allClosed: () => until(() => (clients.size === 0 ? true : undefined)).then(() => {}),
    request: (ordinal) => until(() => asked[ordinal - 1]),
    setRule(next) {
      rule = next;
    },
    setQuota(next) {
      quota = next;
      usedBefore = { bytes: bytes(), requests: tunnels };
    },
    async [Symbol.asyncDispose]() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const socket of [...clients, ...upstreams]) socket.destroy();
      await closed;
    },
  };
}

function refuseCredentials(request: ConnectRequest, dialect: "PLAIN" | "BRIGHT_DATA"): ProxyAnswer {
  if (dialect === "BRIGHT_DATA") {
    return request.userName === null
      ? brightDataRefusal(407, "client_10010", "No credentials")
      : brightDataRefusal(407, "client_10000", "Invalid authentication");
  }
  const headers = { "Proxy-Authenticate": 'Basic realm="proxy"' };
  return { do: "REFUSE", status: 407, reason: "Proxy Authentication Required", headers };
}

async function writeEach(socket: Socket, pieces: readonly Buffer[]): Promise<void> {
  for (const piece of pieces) await new Promise<void>((resolve) => socket.write(piece, () => resolve()));
}

/** Calls `onHead` with the first head; bytes behind it are the tunnel's. */
function readHead(socket: Socket, onHead: (head: string) => void): void {
  let buffered: Buffer = Buffer.alloc(0);
  const onData = (chunk: Buffer): void => {
    buffered = Buffer.concat([buffered, chunk]);
    const end = buffered.indexOf("\r\n\r\n");
    if (end === -1) return;
    socket.off("data", onData);
    socket.pause();
    const rest = buffered.subarray(end + 4);
    if (rest.length > 0) socket.unshift(rest);
    onHead(buffered.subarray(0, end).toString("latin1"));
  };
  socket.on("data", onData);
}
