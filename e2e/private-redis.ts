import { mkdtempSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@keble-scraper/local-servers";
import { startTcpProxy, type TcpProxy } from "@keble-scraper/testkit";

/** A Redis of one test's own, behind a proxy: it can be gone, and it can be flushed. */
export type PrivateRedis = AsyncDisposable & {
  /** Through the proxy. */
  readonly url: string;
  readonly proxy: TcpProxy;
  /** Throws away all that it holds. */
  flush(): Promise<void>;
};

/** Starts one on a free port, in a directory that goes with it. */
export async function openPrivateRedis(): Promise<PrivateRedis> {
  const directory = mkdtempSync(join(tmpdir(), "keble-private-redis-"));
  const server = await startRedis({
    path: process.env["PATH"] ?? "",
    directory,
    logFile: join(directory, "redis.log"),
  });
  const proxy = await startTcpProxy({ target: server.url });
  return {
    url: proxy.through(server.url),
    proxy,
    flush: () => flushAll(Number(new URL(server.url).port)),
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await server.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** One inline command needs no client. */
function flushAll(port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port }, () => socket.end("FLUSHALL\r\n"));
    let answer = "";
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => (answer += chunk));
    socket.on("error", reject);
    socket.on("close", () => (answer === "+OK\r\n" ? resolve() : reject(new Error(`FLUSHALL: ${answer}`))));
  });
}
