import {
  createTRPCClientProxy,
  httpLink,
  type TRPCClient,
  TRPCClientError,
  type TRPCRequestOptions,
  TRPCUntypedClient,
} from "@trpc/client";
import type { AnyRouter } from "@trpc/server";
import { Pool } from "undici";
import { v7 as uuidv7 } from "uuid";
import { SYSTEM_CLOCK } from "./clock.ts";
import { createDeadline } from "./deadline.ts";
import { DEADLINE_HEADER, REQUEST_ID_HEADER } from "./internal-trpc.ts";

/** Why a part of the deployment could not answer. */
export type UnavailableReason = "UNREACHABLE" | "TIMEOUT" | "REFUSED" | "FAULT";

/**
 * A part of the deployment did not answer as it should. The message names the part and the reason; no host, address or
 * text of the part's own is in it. Callers answer DEPENDENCY_UNAVAILABLE.
 */
export class DependencyUnavailable extends Error {
  readonly part: string;
  readonly reason: UnavailableReason;

  constructor(part: string, reason: UnavailableReason, options?: { readonly cause?: unknown }) {
    super(`${part} is not available (${reason})`, options);
    this.name = "DependencyUnavailable";
    this.part = part;
    this.reason = reason;
  }
}

/** What a caller may pass with a call: `{ context: { requestId, deadlineAt }, signal }`. */
export type InternalCallContext = {
  readonly requestId?: string;
  /** Milliseconds since the epoch on this machine's clock. */
  readonly deadlineAt?: number;
};

/** Connections to one service; a call each, the rest wait in line. */
const CONNECTIONS_MAX = 64;
/** Idle connections are closed well before the server closes them. */
const KEEP_ALIVE_MS = 4_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** The largest answer; a page of two hundred jobs is a tenth of it. */
const RESPONSE_BYTES_MAX = 32 * 1_024 * 1_024;

/**
 * A typed client of an internal service. Each call ends within `timeoutMs`, or earlier at its `deadlineAt`; it throws
 * `DependencyUnavailable` when the service cannot be reached, answers late, or answers a fault, and the signal's reason
 * when the caller's signal aborted it. No call is repeated. `part` names the service in that error.
 */
export function createInternalClient<R extends AnyRouter>(options: {
  readonly url: string;
  readonly serviceToken: string;
  readonly timeoutMs: number;
  readonly part?: string;
}): { readonly client: TRPCClient<R>; close(): Promise<void> } {
  const part = options.part ?? "internal service";
  const pool = new Pool(new URL(options.url).origin, {
    connections: CONNECTIONS_MAX,
    pipelining: 1,
    keepAliveTimeout: KEEP_ALIVE_MS,
    keepAliveMaxTimeout: KEEP_ALIVE_MS,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    maxResponseSize: RESPONSE_BYTES_MAX,
    allowH2: false,
  });
  const untyped = new TRPCUntypedClient<AnyRouter>({
    links: [
      httpLink({
        url: `${new URL(options.url).origin}/trpc`,
        // Inputs hold target URLs and may be longer than a request line: they travel in bodies only.
        methodOverride: "POST",
        headers: ({ op }) => ({
          authorization: `Bearer ${options.serviceToken}`,
          [REQUEST_ID_HEADER]: String(op.context[REQUEST_ID_HEADER]),
          [DEADLINE_HEADER]: String(op.context[DEADLINE_HEADER]),
        }),
        // `httpLink` reads a status and a body, nothing else of `fetch`: the global one costs a millisecond more a call.
        async fetch(input, init) {
          const url = new URL(String(input));
          const response = await pool.request({
            path: `${url.pathname}${url.search}`,
            method: init?.method === "GET" ? "GET" : "POST",
            headers: (init?.headers ?? {}) as Record<string, string>,
            body: typeof init?.body === "string" ? init.body : null,
            signal: init?.signal ?? null,
          });
          const ok = response.statusCode >= 200 && response.statusCode < 300;
          return { ok, status: response.statusCode, json: () => response.body.json() };
        },
      }),
    ],
  });

  async function call(
    type: "query" | "mutation",
    path: string,
    input: unknown,
    callOptions: TRPCRequestOptions = {},
  ): Promise<unknown> {
    const { requestId = uuidv7(), deadlineAt } = (callOptions.context ?? {}) as InternalCallContext;
    const untilDeadline = deadlineAt === undefined ? options.timeoutMs : deadlineAt - SYSTEM_CLOCK.wallMs();
    const remainingMs = Math.floor(Math.min(options.timeoutMs, untilDeadline));
    const deadline = createDeadline(remainingMs, SYSTEM_CLOCK, callOptions.signal);
    try {
      callOptions.signal?.throwIfAborted();
      if (remainingMs <= 0) {
        throw new DependencyUnavailable(part, "TIMEOUT");
      }
      return await untyped[type](path, input, {
        context: { [REQUEST_ID_HEADER]: requestId, [DEADLINE_HEADER]: remainingMs },
        signal: deadline.signal,
      });
    } catch (error) {
      callOptions.signal?.throwIfAborted();
      throw toUnavailable(part, error, deadline.signal.aborted);
    } finally {
      deadline.dispose();
    }
  }

  // The typed proxy calls these two by name, so that every call ends in the one translation above.
  const calls = {
    query: (path: string, input?: unknown, callOptions?: TRPCRequestOptions) => call("query", path, input, callOptions),
    mutation: (path: string, input?: unknown, callOptions?: TRPCRequestOptions) =>
      call("mutation", path, input, callOptions),
  };
  let closing: Promise<void> | undefined;
  return {
    client: createTRPCClientProxy<R>(calls as unknown as TRPCUntypedClient<R>),
    close() {
      closing ??= pool.destroy().then(() => undefined);
      return closing;
    },
  };
}

function toUnavailable(part: string, error: unknown, isLate: boolean): DependencyUnavailable {
  if (error instanceof DependencyUnavailable) {
    return error;
  }
  if (isLate) {
    return new DependencyUnavailable(part, "TIMEOUT", { cause: error });
  }
  if (error instanceof TRPCClientError && error.meta !== undefined) {
    const code = readCode(error.data);
    const reason =
      code === undefined || code === "INTERNAL_SERVER_ERROR" ? "FAULT" : code === "TIMEOUT" ? "TIMEOUT" : "REFUSED";
    return new DependencyUnavailable(part, reason, { cause: error });
  }
  return new DependencyUnavailable(part, "UNREACHABLE", { cause: error });
}

function readCode(data: unknown): string | undefined {
  return typeof data === "object" && data !== null && "code" in data && typeof data.code === "string"
    ? data.code
    : undefined;
}
