/** An origin in a process of its own: every path is a page of 10 KiB that no other path has. Sends its port to its parent. */
import { createServer } from "node:http";

const FILLER = "lorem ipsum dolor sit amet ".repeat(400).slice(0, 10_200);

const server = createServer((request, response) => {
  if (request.url === "/robots.txt") {
    response.writeHead(404).end();
    return;
  }
  const page = `<html><!-- ${request.url} --><p>${FILLER}</p></html>`;
  response.writeHead(200, { "content-type": "text/html; charset=utf-8", "content-length": Buffer.byteLength(page) });
  response.end(page);
});
server.keepAliveTimeout = 10_000;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  process.send?.(typeof address === "object" ? address?.port : null);
});
process.on("disconnect", () => process.exit(0));
