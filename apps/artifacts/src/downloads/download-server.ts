import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  type BinaryKey,
  type BinaryStore,
  formatBinaryKey,
  signDownloadUrl,
  StoreUnavailable,
} from "@keble-scraper/artifact-store";
import { type Clock, closeServer, type Component, listenAt, type Logger } from "@keble-scraper/service";
import { v7 as uuidv7 } from "uuid";
import type { DownloadRequest } from "../context.ts";
import { SAFETY_HEADERS } from "./download-headers.ts";
import { handleDownload } from "./handle-download.ts";
import { sendError } from "./send-error.ts";

/** The download server of the local store. `url` is the base URL with its real port; before the start it throws. */
export type DownloadServer = Component & { readonly url: string; sign(request: DownloadRequest): string };

/** A client that takes or sends nothing for this long is cut. */
const SOCKET_IDLE_MS = 120_000;
/** From the first byte of a request to the end of its headers. */
const HEADERS_MS = 10_000;
/** Past this many connections new ones are refused: each may hold a file open. */
const CONNECTIONS_MAX = 512;
const RETRY_AFTER_SECONDS = 5;
const LOOPBACK_HOSTS: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);
/** A well-formed request id, as everywhere. */
const REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Serves `store`, and nothing else, at `baseUrl`, by signed links alone. Development and test only: the base URL's host must
 * be loopback (throws otherwise). Port 0 takes any free one. Stop lets downloads in flight end until the deadline.
 */
export function createDownloadServer(options: {
  readonly baseUrl: string;
  readonly signingKey: Uint8Array;
  readonly store: Pick<BinaryStore, "head" | "read">;
  readonly clock: Clock;
  readonly logger: Logger;
}): DownloadServer {
  const { logger, signingKey } = options;
  const base = new URL(options.baseUrl);
  if (base.protocol !== "http:" || !LOOPBACK_HOSTS.has(base.hostname)) {
    throw new Error("the local store's base URL must be http on a loopback host");
  }
  const basePath = base.pathname.replace(/\/+$/, "");
  const parts = { store: options.store, signingKey, basePath, clock: options.clock, logger };
  let server: Server | null = null;
  let stopping: Promise<void> | null = null;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = request.headers["x-request-id"];
    const requestId = typeof sent === "string" && REQUEST_ID.test(sent) ? sent : uuidv7();
    for (const [name, value] of Object.entries(SAFETY_HEADERS)) response.setHeader(name, value);
    response.setHeader("x-request-id", requestId);
    try {
      await handleDownload(parts, requestId, request, response);
    } catch (error) {
      logger.error({ requestId, err: error }, "download.faulted");
      if (response.headersSent) response.destroy();
      else if (error instanceof StoreUnavailable) {
        sendError(response, requestId, "DEPENDENCY_UNAVAILABLE", { "retry-after": String(RETRY_AFTER_SECONDS) });
      } else sendError(response, requestId, "INTERNAL");
    }
  }

  function url(): string {
    const address = server?.address();
    if (typeof address !== "object" || address === null) throw new Error("the download server is not listening");
    return `${base.protocol}//${base.hostname}:${String(address.port)}${basePath}`;
  }

  return {
    name: "download-server",
    get url() {
      return url();
    },
    sign({ key, ...claims }) {
      return signDownloadUrl(url(), signingKey, { ...claims, path: toDownloadPath(key) });
    },
    async start(signal) {
      signal.throwIfAborted();
      const created = createServer({ headersTimeout: HEADERS_MS, requestTimeout: HEADERS_MS }, (request, response) => {
        void answer(request, response);
      });
      created.maxConnections = CONNECTIONS_MAX;
      created.setTimeout(SOCKET_IDLE_MS);
      const port = base.port === "" ? 80 : Number(base.port);
      await listenAt(created, { host: base.hostname.replace(/^\[|\]$/g, ""), port });
      server = created;
    },
    stop(deadline) {
      stopping ??= server === null ? Promise.resolve() : closeServer(server, deadline);
      return stopping;
    },
  };
}

function toDownloadPath(key: BinaryKey): string {
  return `/${formatBinaryKey(key)}`;
}
