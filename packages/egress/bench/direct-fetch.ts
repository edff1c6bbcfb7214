import { once } from "node:events";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { ADMIT_ALL, createDirectTransport, type FetchRequest, vetUrl } from "@keble-scraper/egress";

/**
 * CPU of one fetch of a 10 KiB page over kept connections, without the origin's: it runs in a process of its own.
 * `tsx --conditions=@keble-scraper/source packages/egress/bench/direct-fetch.ts [fetches] [at once]`
 */
const [fetches = 10_000, atOnce = 50] = process.argv.slice(2).map(Number);

const ORIGIN = `
const body = Buffer.alloc(10240, "<p>some words of text</p>")
const server = require("node:http").createServer((_, response) => {
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-length": body.length })
  response.end(body)
}).listen(0, "127.0.0.1", () => console.log(server.address().port))
`;
const origin = spawn(process.execPath, ["-e", ORIGIN], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const [port] = (await once(createInterface(origin.stdout), "line")) as [string];
  const vetted = vetUrl("http://origin.example.com/page");
  if (!vetted.ok) throw new Error(vetted.reason);
  const transport = createDirectTransport({
    resolver: { resolve: () => Promise.resolve({ ok: true, addresses: ["93.184.216.34"] }) },
    overrides: { dial: () => ({ host: "127.0.0.1", port: Number(port) }) },
  });
  const request: Omit<FetchRequest, "deadline"> = {
    url: vetted.url,
    method: "GET",
    headers: {},
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    maxBodyBytes: 10_485_760,
    callerId: "bench",
    robots: "IGNORE",
    attemptLimitMs: 60_000,
    capture: "DOM",
    egress: { country: null, session: null },
  };
  const sink = { write() {} };

  const run = async (count: number): Promise<void> => {
    let left = count;
    const worker = async (): Promise<void> => {
      const { signal } = new AbortController();
      while (left > 0) {
        left -= 1;
        const outcome = await transport.fetch({ ...request, deadline: performance.now() + 60_000 }, sink, {
          signal,
          admit: ADMIT_ALL,
        });
        if (!outcome.ok) throw new Error(JSON.stringify(outcome.failure));
      }
    };
    await Promise.all(Array.from({ length: atOnce }, worker));
  };

  await run(2_000);
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  await run(fetches);
  const seconds = (performance.now() - startedAt) / 1_000;
  const used = process.cpuUsage(cpu);
  const cpuMicros = Math.round((used.user + used.system) / fetches);
  console.log(
    JSON.stringify({
      fetches,
      atOnce,
      perSecond: Math.round(fetches / seconds),
      cpuMicros,
      sockets: transport.sockets(),
    }),
  );
  await transport.close(performance.now());
} finally {
  origin.kill();
}
