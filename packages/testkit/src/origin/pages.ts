import { gzipSync } from "node:zlib";
import type { OriginBehaviour } from "./origin-reply.ts";

/** A plain page. */
export function page(body: string | Buffer, contentType = "text/plain; charset=utf-8"): OriginBehaviour {
  return (reply) => reply.send({ headers: { "Content-Type": contentType }, body });
}

/** A redirect with an empty body. */
export function redirect(location: string, status = 302): OriginBehaviour {
  return (reply) => reply.send({ status, reason: "Found", headers: { Location: location } });
}

/** Writes exactly these bytes and keeps the connection open. */
export function bytes(text: string | Buffer): OriginBehaviour {
  return (reply) => reply.write(text);
}

/** Writes exactly these bytes and sends FIN. */
export function bytesThenEnd(text: string | Buffer): OriginBehaviour {
  return (reply) => {
    reply.end(text);
  };
}

/** A page whose head and bytes go out, after which nothing more comes until the peer closes. */
export function stall(text: string | Buffer): OriginBehaviour {
  return async (reply) => {
    await reply.write(text);
    await reply.closed;
  };
}

/** A handful of ordinary pages: text, html, json, a gzip body, an allowing robots.txt, a redirect and a 404 page. */
export const ORDINARY_PAGES: Readonly<Record<string, OriginBehaviour>> = {
  "/": page("<!doctype html><title>Home</title><p>Hello", "text/html; charset=utf-8"),
  "/hello.txt": page("hello"),
  "/data.json": page('{"n":1}', "application/json"),
  "/packed": (reply) =>
    reply.send({
      headers: { "Content-Type": "text/html; charset=utf-8", "Content-Encoding": "gzip" },
      body: gzipSync("<!doctype html><title>Packed</title><p>Hello"),
    }),
  "/robots.txt": page("User-agent: *\nAllow: /\n"),
  "/moved": redirect("/hello.txt", 301),
};
