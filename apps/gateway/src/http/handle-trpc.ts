import type { Principal } from "@keble-scraper/contract";
import { fetchRequestHandler } from "@trpc/server/adapters/fetch";
import { failureHeaders, toFailure } from "../api-failure.ts";
import type { ApiContext, GatewayParts } from "../context.ts";
import { noteRequest } from "../public-trpc.ts";
import { apiRouter } from "../router.ts";
import { parseJson } from "./parse-json.ts";
import { BATCH_BYTES_MAX, BODY_BYTES_MAX, readJsonBody } from "./read-body.ts";

/** Where the typed face is. */
export const TRPC_PATH = "/trpc";

/**
 * Serves the typed face: one call a request (no batching, so that a request's work and size stay bounded), with the same
 * limits on bodies as REST. Every error carries the envelope in `error.data.error`, tRPC's own too.
 */
export async function handleTrpc(
  parts: GatewayParts,
  call: {
    readonly request: Request;
    readonly requestId: string;
    readonly onPrincipal: (principal: Principal) => void;
    readonly onFault: (error: unknown) => void;
  },
): Promise<Response> {
  const { request, requestId } = call;
  const prepared = await prepare(parts, call);
  return fetchRequestHandler({
    endpoint: TRPC_PATH,
    req: prepared.request,
    router: apiRouter,
    allowBatching: false,
    createContext() {
      if ("refusal" in prepared) {
        throw prepared.refusal;
      }
      return prepared.context;
    },
    onError({ error }) {
      noteRequest(error, requestId);
      if (!request.signal.aborted) {
        call.onFault(error);
      }
    },
    responseMeta({ errors: [error] }) {
      return error === undefined
        ? {}
        : { headers: new Headers(failureHeaders(toFailure(error), parts.clock.wallMs())) };
    },
  });
}

type Prepared = { readonly request: Request } & ({ readonly context: ApiContext } | { readonly refusal: Error });

/** Finds the caller, then reads the body: a stranger's is left unread. What is wrong is told by tRPC, in its own shape. */
async function prepare(
  parts: GatewayParts,
  { request, requestId, onPrincipal }: Parameters<typeof handleTrpc>[1],
): Promise<Prepared> {
  const { method, url, signal } = request;
  const headers = new Headers(request.headers);
  headers.delete("content-length");
  headers.delete("transfer-encoding");
  const bodiless = () => new Request(url, { method, headers, signal });
  try {
    const caller = await parts.keys.authenticate(headers.get("authorization") ?? undefined);
    const context = { ...parts, requestId, caller };
    if (caller.ok) {
      onPrincipal(caller.value);
    }
    if (method !== "POST" || !caller.ok) {
      return { request: bodiless(), context };
    }
    const isBatch = new URL(url).pathname === `${TRPC_PATH}/submitBatch`;
    const bytes = await readJsonBody(request, isBatch ? BATCH_BYTES_MAX : BODY_BYTES_MAX);
    if (bytes === null) {
      return { request: bodiless(), context };
    }
    parseJson(bytes);
    return { request: new Request(url, { method, headers, signal, body: bytes }), context };
  } catch (error) {
    return { request: bodiless(), refusal: error instanceof Error ? error : new Error("unknown", { cause: error }) };
  }
}
