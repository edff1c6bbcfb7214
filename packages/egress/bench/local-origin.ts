import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

/** A page of n bytes at `/n`, as plain text at `/n?text`, from a process of its own, so that its CPU is nobody's here. */
const ORIGIN = `
const bodies = new Map()
const bodyOf = (bytes) => {
  if (!bodies.has(bytes)) bodies.set(bytes, Buffer.alloc(bytes, "<p>some words of text</p>"))
  return bodies.get(bytes)
}
const server = require("node:http").createServer({ keepAliveTimeout: 60000 }, (request, response) => {
  const [path, kind = "html"] = request.url.split("?")
  const body = bodyOf(Number(path.slice(1)))
  response.writeHead(200, { "content-type": kind === "text" ? "text/plain; charset=utf-8" : "text/html; charset=utf-8", "content-length": body.length })
  response.end(body)
}).listen(0, "127.0.0.1", () => console.log(server.address().port))
`;

/** Starts it. */
export async function startLocalOrigin(): Promise<{ readonly port: number; stop(): void }> {
  const origin = spawn(process.execPath, ["-e", ORIGIN], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(createInterface(origin.stdout), "line")) as [string];
  return {
    port: Number(port),
    stop() {
      origin.kill();
    },
  };
}
