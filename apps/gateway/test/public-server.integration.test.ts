import { connect, type Socket } from "node:net";
import { ErrorEnvelope } from "@keble-scraper/contract";
import { createLogger } from "@keble-scraper/service";
import { describe, expect, it } from "vitest";
import { createPublicServer } from "../src/http/public-server.ts";

const logger = createLogger({ name: "test", level: "silent" });

function start(fetch: (request: Request) => Response | Promise<Response>, stopping = () => {}) {
  const server = createPublicServer({
    host: "127.0.0.1",
    port: 0,
    fetch,
    stopping,
    logger,
    timeouts: { headersMs: 200, requestMs: 400, checkMs: 50 },
  });
  return server.start(new AbortController().signal).then(() => server);
}

async function open(url: string): Promise<{ socket: Socket; end: Promise<string> }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let text = "";
  socket.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const end = new Promise<string>((resolve) => socket.on("close", () => resolve(text)));
  await new Promise((resolve) => socket.on("connect", resolve));
  return { socket, end };
}

describe("a slow sender", () => {
  it.each([
    ["of a head", "POST / HTTP/1.1\r\nHost: a\r\n"],
    ["of a body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab"],
  ])("%s is answered 408 with the envelope and cut", async (_, bytes) => {
    const server = await start(async (request) => new Response(await request.text()));
    const { socket, end } = await open(server.url);
    socket.write(bytes);
    const answer = await end;
    expect(answer).toMatch(/^HTTP\/1.1 408 /);
    ErrorEnvelope.parse(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n") + 4)));
    await server.stop(performance.now());
  });
});

const GET = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

describe("one connection", () => {
  it("that pipelines thousands of requests has sixteen started and is closed, and others are answered at once", async () => {
    let begun = 0;
    const server = await start(({ url }) => {
      begun += 1;
      return url.endsWith("/other") ? new Response("other") : new Promise<Response>(() => undefined);
    });
    const { socket, end } = await open(server.url);
    socket.on("error", () => undefined);
    socket.write(GET.repeat(10_000));
    expect(await end).toBe("");
    expect(begun).toBe(16);
    expect(await (await fetch(`${server.url}/other`)).text()).toBe("other");
    await server.stop(performance.now());
  });

  it("may have sixteen open answers, again and again", async () => {
    const server = await start(() => new Response("fine"));
    const { socket, end } = await open(server.url);
    let answers = 0;
    const all = new Promise<void>((resolve) => {
      socket.on("data", (chunk: Buffer) => {
        const before = answers;
        answers += chunk.toString().split("HTTP/1.1 200 ").length - 1;
        if (answers === 64) resolve();
        // An answer is counted until it is out of our hands, so the next ones come a turn later.
        else if (answers % 16 === 0 && answers > before) setImmediate(() => socket.write(GET.repeat(16)));
      });
    });
    socket.write(GET.repeat(16));
    await Promise.race([all, end]);
    expect(answers).toBe(64);
    socket.destroy();
    await server.stop(performance.now());
  });
});

describe("stop", () => {
  it("takes no new connection, lets a request in flight end, and then returns", async () => {
    let finish: () => void = () => undefined;
    const held = new Promise<void>((resolve) => (finish = resolve));
    let arrive: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    let stops = 0;
    const server = await start(
      async () => {
        arrive();
        await held;
        return new Response("done", { headers: { connection: "close" } });
      },
      () => (stops += 1),
    );
    const { url } = server;
    const answer = fetch(url);
    await arrived;
    const stopped = server.stop(performance.now() + 10_000);
    expect(server.stop(performance.now())).toBe(stopped);
    await expect(fetch(url)).rejects.toThrow("fetch failed");
    finish();
    expect(await (await answer).text()).toBe("done");
    await stopped;
    expect(stops).toBe(1);
  });

  it("cuts what is still in flight at its deadline", async () => {
    let arrive: () => void = () => undefined;
    const arrived = new Promise<void>((resolve) => (arrive = resolve));
    const server = await start(() => {
      arrive();
      return new Promise<Response>(() => undefined);
    });
    const answer = fetch(server.url).catch(() => "cut");
    await arrived;
    await server.stop(performance.now() + 50);
    expect(await answer).toBe("cut");
  });

  it("is safe before start", async () => {
    const server = createPublicServer({
      host: "127.0.0.1",
      port: 0,
      fetch: () => new Response(),
      stopping: () => undefined,
      logger,
    });
    await server.stop(performance.now());
    expect(() => server.url).toThrow("not listening");
  });
});
