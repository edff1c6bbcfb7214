import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { localFailure, toErrorEnvelope } from "@keble-scraper/contract";
import { expect, it } from "vitest";
import { createScraperClient, ScraperError } from "../src/index.ts";

const ID = "01978b3c-7a00-7000-8000-000000000001";

/** A server that stands where the gateway does, and keeps what it was asked. */
async function startServer(handle: (request: IncomingMessage, response: ServerResponse) => void) {
  const asked: { method?: string; url?: string; authorization?: string; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (chunk: Buffer) => (body += chunk.toString()));
    request.on("end", () => {
      const { method, url, headers } = request;
      asked.push({
        body,
        ...(method === undefined ? {} : { method }),
        ...(url === undefined ? {} : { url }),
        ...(headers.authorization === undefined ? {} : { authorization: headers.authorization }),
      });
      handle(request, response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const json = (response: ServerResponse, status: number, body: unknown) =>
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

it("sends one request a call, with the key, the path of the operation and the input", async () => {
  await using server = await startServer((_, response) => json(response, 200, { result: { data: { replay: false } } }));
  const client = createScraperClient({ url: server.url, apiKey: "ks_live_x" });
  const input = { target: { url: "https://a.example/" }, idempotencyKey: "k", waitSeconds: 5 };
  expect(await client.submitJob.mutate(input)).toEqual({ replay: false });
  await client.getJob.query({ id: ID });
  expect(server.asked).toEqual([
    { method: "POST", url: "/trpc/submitJob", authorization: "Bearer ks_live_x", body: JSON.stringify(input) },
    {
      method: "GET",
      url: `/trpc/getJob?input=${encodeURIComponent(JSON.stringify({ id: ID }))}`,
      authorization: "Bearer ks_live_x",
      body: "",
    },
  ]);
});

it("rejects with the service's failure, and sends nothing twice", async () => {
  const envelope = toErrorEnvelope(localFailure("DEPENDENCY_UNAVAILABLE"), { requestId: "r" });
  await using server = await startServer((_, response) =>
    json(response, 503, { error: { code: -32_603, message: "x", data: envelope } }),
  );
  const client = createScraperClient({ url: server.url, apiKey: "k" });
  const error = await client.getJob.query({ id: ID }).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ScraperError);
  expect(error).toMatchObject({ failure: envelope.error });
  expect(server.asked).toHaveLength(1);
});

it("rejects with no failure when a page comes back, nobody answers, or the call is ended", async () => {
  const page = await startServer((_, response) => response.writeHead(502).end("<html>bad gateway"));
  const client = createScraperClient({ url: page.url, apiKey: "k" });
  await expect(client.getJob.query({ id: ID })).rejects.toMatchObject({ name: "ScraperError", failure: null });
  const signal = AbortSignal.abort();
  await expect(client.getJob.query({ id: ID }, { signal })).rejects.toMatchObject({ failure: null });
  await page[Symbol.asyncDispose]();
  await expect(client.getJob.query({ id: ID })).rejects.toMatchObject({ name: "ScraperError", failure: null });
});
