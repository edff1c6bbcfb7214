import { createServer, type Socket } from "node:net";
import { createTestDatabase, startTcpProxy } from "@keble-scraper/testkit";
import { sql as drizzleSql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createDatabase, type Database } from "../src/database.ts";
import { isDatabaseOutage } from "../src/is-database-outage.ts";
import { migrate } from "../src/migrate.ts";

function open(url: string, statementTimeoutMs = 500): Database & AsyncDisposable {
  const database = createDatabase({
    url,
    applicationName: "test",
    commandConnections: 1,
    readConnections: 1,
    statementTimeoutMs,
  });
  return Object.assign(database, {
    [Symbol.asyncDispose]: () => database.stop(performance.now() + 50),
  });
}

const uncaught: unknown[] = [];
const onUncaught = (error: unknown) => void uncaught.push(error);
beforeEach(() => {
  uncaught.length = 0;
  process.on("uncaughtException", onUncaught);
  process.on("unhandledRejection", onUncaught);
});
afterEach(() => {
  process.off("uncaughtException", onUncaught);
  process.off("unhandledRejection", onUncaught);
  expect(uncaught).toEqual([]);
});

// A database that is stopped, or a network that drops packets, says nothing: without a limit of ours every worker waits.
test("a statement, a transaction and a read on a connection that went silent fail as an outage, and later ones work", async () => {
  await using test = await createTestDatabase({ migrate });
  const { hostname, port } = new URL(test.url);
  await using proxy = await startTcpProxy({ target: { host: hostname, port: Number(port) } });
  await using database = open(proxy.through(test.url));
  await database.commands`select 1`;
  await database.reads.execute(drizzleSql`select 1`);
  proxy.blackHole();
  const outcomes = await Promise.allSettled([
    database.commands`select 1`,
    database.commands.begin((tx) => tx`select 2`),
    database.reads.execute(drizzleSql`select 3`),
  ]);
  for (const outcome of outcomes) {
    expect(outcome.status).toBe("rejected");
    expect(isDatabaseOutage((outcome as PromiseRejectedResult).reason)).toBe(true);
  }
  await proxy.restore();
  expect(await database.commands`select 4 as n`).toEqual([{ n: 4 }]);
  expect(await database.commands.begin((tx) => tx`select 5 as n`)).toEqual([{ n: 5 }]);
});

test("a connection that owes nothing is left alone however long it rests", async () => {
  await using test = await createTestDatabase({ migrate });
  await using database = open(test.url, 100);
  const [before] = await database.commands<{ pid: number }[]>`select pg_backend_pid() as pid`;
  // Another connection passes the time: nothing is asked of the one under test meanwhile.
  await using clock = open(test.url, 5_000);
  await clock.commands`select pg_sleep(1.6)`;
  const [later] = await database.commands<{ pid: number }[]>`select pg_backend_pid() as pid`;
  expect(later?.pid).toBe(before?.pid);
});

const message = (type: string, body: Buffer) => {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(body.length + 4, 1);
  return Buffer.concat([head, body]);
};
const READY = message("Z", Buffer.from("I"));
const HELLO = Buffer.concat([message("R", Buffer.from([0, 0, 0, 0])), READY]);
const DONE = Buffer.concat([
  message("1", Buffer.alloc(0)),
  message("t", Buffer.from([0, 0])),
  message("n", Buffer.alloc(0)),
  message("2", Buffer.alloc(0)),
  message("C", Buffer.from("SELECT 0\0")),
  message("Z", Buffer.from("T")),
]);
const FATAL = message(
  "E",
  Buffer.from("SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0"),
);

const ENDINGS: Record<string, (socket: Socket) => void> = {
  "a FIN": (socket) => socket.end(),
  "a close": (socket) => socket.destroy(),
  "a reset": (socket) => socket.resetAndDestroy(),
  "a shutdown message and a FIN": (socket) => socket.end(FATAL),
};
const MOMENTS = Object.keys(ENDINGS).flatMap((ending) => [1, 2, 3, 4, 5].map((at) => [ending, at] as const));

// The driver was seen to throw past every handler here, which ends the process and loses all it runs.
test.each(MOMENTS)("%s at message %i of a transaction rejects it and throws nothing past it", async (ending, at) => {
  const server = createServer((socket) => {
    let messages = 0;
    socket.on("error", () => undefined);
    socket.on("data", () => {
      messages += 1;
      if (messages > at) {
        server.close();
        ENDINGS[ending]?.(socket);
      } else socket.write(messages === 1 ? HELLO : DONE);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;
  await using database = open(`postgres://u:p@127.0.0.1:${port}/d`);
  const transaction = database.commands.begin(async (tx) => {
    await tx`select 1`;
    await tx`select 2`;
  });
  await expect(transaction).rejects.toThrow();
  // Whatever the driver has put off runs in the next turns of the loop.
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  server.close();
});
