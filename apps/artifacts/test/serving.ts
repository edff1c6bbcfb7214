import { mkdtemp, rm } from "node:fs/promises";
import { type IncomingMessage, request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Writable } from "node:stream";
import { buffer } from "node:stream/consumers";
import {
  type BinaryKey,
  type BinaryStore,
  createGeneration,
  createLocalStore,
  createSpool,
  deriveDownloadKey,
} from "@keble-scraper/artifact-store";
import { createLogger, type Logger, SYSTEM_CLOCK } from "@keble-scraper/service";
import { v7 as uuidv7 } from "uuid";
import { createDownloadServer } from "../src/downloads/download-server.ts";

const never = new AbortController().signal;

/** Log lines as they were written, and a wait for the first with a given `msg`. */
export type CapturedLog = {
  readonly logger: Logger;
  readonly lines: Record<string, unknown>[];
  line(msg: string): Promise<Record<string, unknown>>;
};

/** A logger whose lines the test reads. */
export function captureLog(): CapturedLog {
  const lines: Record<string, unknown>[] = [];
  const waiting = new Set<() => void>();
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(JSON.parse(chunk.toString()) as Record<string, unknown>);
      for (const wake of waiting) wake();
      done();
    },
  });
  async function line(msg: string): Promise<Record<string, unknown>> {
    return new Promise((resolve) => {
      function look(): void {
        const found = lines.find((entry) => entry["msg"] === msg);
        if (found === undefined) return;
        waiting.delete(look);
        resolve(found);
      }
      waiting.add(look);
      look();
    });
  }
  return { logger: createLogger({ name: "test", level: "debug", destination }), lines, line };
}

/** Puts bytes into a store and returns their key. */
export async function putBytes(store: BinaryStore, directory: string, bytes: Uint8Array): Promise<BinaryKey> {
  const spool = createSpool({ directory: join(directory, "spool") });
  await spool.start(never);
  const body = spool.open();
  for (let at = 0; at < bytes.byteLength; at += 262_144) await body.write(bytes.subarray(at, at + 262_144));
  const spooled = await body.finish();
  const key = { sha256: spooled.sha256, generation: createGeneration() };
  await store.put(spooled, key);
  await spooled.discard();
  return key;
}

/** A local store with a download server before it, on a free port. `nowMs` moves its clock. */
export async function openServing(basePath = "") {
  const directory = await mkdtemp(join(tmpdir(), "keble-downloads-"));
  const store = createLocalStore({ directory: join(directory, "store"), prefix: "artifacts" });
  await store.start(never);
  const log = captureLog();
  const time = { offsetMs: 0 };
  const server = createDownloadServer({
    baseUrl: `http://127.0.0.1:0${basePath}`,
    signingKey: deriveDownloadKey("secret"),
    store,
    clock: { monotonicMs: SYSTEM_CLOCK.monotonicMs, wallMs: () => Date.now() + time.offsetMs },
    logger: log.logger,
  });
  await server.start(never);
  return {
    directory,
    log,
    server,
    store,
    time,
    put: async (bytes: Uint8Array) => putBytes(store, directory, bytes),
    /** The target (path and query) of a link that holds for a minute. */
    target(key: BinaryKey, contentType = "text/plain", disposition = "attachment; filename=a.txt"): string {
      const expiresAtMs = Date.now() + 60_000;
      const url = new URL(server.sign({ key, auditId: uuidv7(), expiresAtMs, contentType, disposition }));
      return url.pathname + url.search;
    },
    ask: async (target: string, options?: AskOptions) => ask(server.url, target, options),
    async [Symbol.asyncDispose]() {
      await server.stop(performance.now());
      await rm(directory, { recursive: true });
    },
  };
}

type AskOptions = { readonly method?: string; readonly headers?: Record<string, string> };
export type Asked = { readonly status: number; readonly headers: IncomingMessage["headers"]; readonly body: Buffer };

/** Sends the target exactly as it is, unlike `fetch`, and reads the whole answer. */
export async function ask(url: string, target: string, options: AskOptions = {}): Promise<Asked> {
  const response = await open(url, target, options);
  return { status: response.statusCode ?? 0, headers: response.headers, body: await buffer(response) };
}

/** As `ask`, up to the head of the answer. */
export async function open(url: string, target: string, options: AskOptions = {}): Promise<IncomingMessage> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    const sent = httpRequest(
      { hostname, port, path: target, method: options.method ?? "GET", headers: options.headers ?? {}, agent: false },
      resolve,
    );
    sent.once("error", reject);
    sent.end();
  });
}
