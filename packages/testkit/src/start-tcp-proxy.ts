import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";

/** A TCP relay that a test breaks. It starts by passing everything on. */
export type TcpProxy = AsyncDisposable & {
  readonly port: number;
  /** The URL with this proxy's host and port in place of its own. */
  through(url: string): string;
  /** Connections that are open now. */
  readonly connections: number;
  /** Resets every open connection; new ones pass. */
  cut(): void;
  /** Resets every open connection, and new ones are refused until `restore`. */
  refuse(): Promise<void>;
  /**
   * Bytes stop, on open and new connections, without a sign of it: in both directions, or only the answers (then requests
   * still arrive and take effect). They flow on after `restore`.
   */
  blackHole(direction?: "BOTH" | "ANSWERS"): void;
  /** Every chunk waits this long in each direction; zero ends it. */
  delay(milliseconds: number): void;
  /** Back to passing everything on at once. */
  restore(): Promise<void>;
};

type Faults = { blackHole: "NONE" | "BOTH" | "ANSWERS"; delayMs: number };
type Pair = { readonly client: Socket; readonly upstream: Socket; readonly flush: () => void };

/** Starts a proxy on 127.0.0.1 in front of `target`, given as a URL with a port or as host and port. */
export async function startTcpProxy(options: {
  readonly target: string | { readonly host: string; readonly port: number };
}): Promise<TcpProxy> {
  const target = typeof options.target === "string" ? toHostPort(options.target) : options.target;
  const faults: Faults = { blackHole: "NONE", delayMs: 0 };
  const pairs = new Set<Pair>();
  let server = await listen(0, accept);
  const { port } = server.address() as AddressInfo;

  function accept(client: Socket): void {
    const upstream = connect({ ...target, allowHalfOpen: true });
    const requests = relay(client, upstream, faults, () => faults.blackHole === "BOTH");
    const answers = relay(upstream, client, faults, () => faults.blackHole !== "NONE");
    const pair: Pair = {
      client,
      upstream,
      flush: () => {
        requests();
        answers();
      },
    };
    pairs.add(pair);
    const end = () => {
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) {
      socket.setNoDelay(true);
      socket.on("error", () => socket.destroy());
      socket.on("close", end);
    }
  }

  function cut(): void {
    for (const { client, upstream } of pairs) {
      client.resetAndDestroy();
      upstream.destroy();
    }
  }

  return {
    port,
    through(url) {
      const changed = new URL(url);
      changed.hostname = "127.0.0.1";
      changed.port = String(port);
      return changed.href;
    },
    get connections() {
      return pairs.size;
    },
    cut,
    async refuse() {
      const closed = closeServer(server);
      cut();
      await closed;
    },
    blackHole(direction = "BOTH") {
      faults.blackHole = direction;
    },
    delay(milliseconds) {
      faults.delayMs = milliseconds;
    },
    async restore() {
      faults.blackHole = "NONE";
      faults.delayMs = 0;
      if (!server.listening) server = await listen(port, accept);
      for (const { flush } of pairs) flush();
    },
    async [Symbol.asyncDispose]() {
      const closed = server.listening ? closeServer(server) : Promise.resolve();
      cut();
      await closed;
    },
  };
}

/** Copies `from` to `to` in order; returns what sends the bytes that were kept back. */
function relay(from: Socket, to: Socket, faults: Faults, isBlocked: () => boolean): () => void {
  const kept: { chunk: Buffer | null; dueAt: number }[] = [];
  let timer: NodeJS.Timeout | undefined;
  const flush = () => {
    clearTimeout(timer);
    while (kept[0] !== undefined && !isBlocked()) {
      const waitMs = faults.delayMs === 0 ? 0 : kept[0].dueAt - performance.now();
      if (waitMs > 0) {
        timer = setTimeout(flush, waitMs);
        return;
      }
      const { chunk } = kept.shift() ?? { chunk: null };
      if (to.destroyed) continue;
      if (chunk === null) to.end();
      else if (!to.write(chunk)) from.pause();
    }
  };
  const take = (chunk: Buffer | null) => {
    kept.push({ chunk, dueAt: performance.now() + faults.delayMs });
    flush();
  };
  from.on("data", take);
  from.on("end", () => take(null));
  to.on("drain", () => from.resume());
  to.on("close", () => clearTimeout(timer));
  return flush;
}

function listen(port: number, accept: (client: Socket) => void): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer({ allowHalfOpen: true }, accept);
    server.once("error", reject);
    server.listen({ port, host: "127.0.0.1" }, () => resolve(server));
  });
}

function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

function toHostPort(url: string): { host: string; port: number } {
  const { hostname, port } = new URL(url);
  return { host: hostname, port: Number(port) };
}
