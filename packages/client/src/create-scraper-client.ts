import type { ApiRouter } from "@keble-scraper/gateway/router";
import {
  createTRPCClientProxy,
  httpLink,
  type TRPCClient,
  type TRPCRequestOptions,
  TRPCUntypedClient,
} from "@trpc/client";
import { toScraperError } from "./scraper-error.ts";

/** The operations of a deployment, by name: `client.submitJob.mutate(…)`, `client.getJob.query(…)`. */
export type ScraperClient = TRPCClient<ApiRouter>;

/**
 * A client of the deployment at `url` (its origin) with an API key. Every call rejects with a `ScraperError` and nothing
 * else. None is repeated: the failure's disposition says whether another try can help, and an `idempotencyKey` makes
 * repeating a submit safe. `signal` among a call's options ends it early.
 */
export function createScraperClient(options: { readonly url: string; readonly apiKey: string }): ScraperClient {
  const untyped = new TRPCUntypedClient<ApiRouter>({
    links: [
      httpLink({
        url: new URL("/trpc", options.url).href,
        headers: { authorization: `Bearer ${options.apiKey}` },
      }),
    ],
  });
  async function call(
    type: "query" | "mutation",
    path: string,
    input: unknown,
    callOptions?: TRPCRequestOptions,
  ): Promise<unknown> {
    try {
      return await untyped[type](path, input, callOptions);
    } catch (error) {
      throw toScraperError(error);
    }
  }
  // The typed proxy calls these two by name, so that every error goes through the one translation above.
  const calls = {
    query: (path: string, input?: unknown, callOptions?: TRPCRequestOptions) => call("query", path, input, callOptions),
    mutation: (path: string, input?: unknown, callOptions?: TRPCRequestOptions) =>
      call("mutation", path, input, callOptions),
  };
  return createTRPCClientProxy<ApiRouter>(calls as unknown as TRPCUntypedClient<ApiRouter>);
}
