import { request } from "undici";
import { CliError } from "../cli-error.ts";

/** An answer of the public API; `body` is parsed JSON, or null when there was none. */
export type GatewayAnswer = { readonly status: number; readonly body: unknown };

/** Calls the public API as a key's owner. `body` is sent as JSON. */
export type GatewayClient = {
  call(
    key: string,
    method: "GET" | "POST" | "PATCH" | "DELETE",
    path: string,
    options?: { readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> },
  ): Promise<GatewayAnswer>;
};

/** Longer than the longest `Prefer: wait`. */
const ANSWER_WITHIN_MS = 90_000;

/** A client of the gateway at `url`. */
export function createGatewayClient(url: string): GatewayClient {
  return {
    async call(key, method, path, options = {}) {
      const answer = await request(`${url}${path}`, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          ...(options.body === undefined ? {} : { "content-type": "application/json" }),
          ...options.headers,
        },
        body: options.body === undefined ? null : JSON.stringify(options.body),
        headersTimeout: ANSWER_WITHIN_MS,
        bodyTimeout: ANSWER_WITHIN_MS,
      });
      const text = await answer.body.text();
      return { status: answer.statusCode, body: text === "" ? null : (JSON.parse(text) as unknown) };
    },
  };
}

/** The body of an expected answer; any other status fails with the envelope's code and message. */
export function expectStatus(answer: GatewayAnswer, statuses: readonly number[], what: string): unknown {
  if (statuses.includes(answer.status)) return answer.body;
  throw new CliError("FAULT", `${what} was answered ${answer.status}: ${JSON.stringify(answer.body).slice(0, 500)}`);
}
