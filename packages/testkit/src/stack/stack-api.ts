import { Agent, request } from "undici";

/** An answer as it came; `body` is parsed when it is JSON, else its text, or null when empty. */
export type ApiAnswer = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
};

/** The fields of a job that tests look at most. */
export type ApiJob = { readonly id: string; readonly status: string } & Readonly<Record<string, unknown>>;

/** The public REST API as a caller sees it. */
export type StackApi = {
  /** Any call; the service key unless another is given, null for none. */
  call(
    method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
    path: string,
    options?: {
      readonly body?: unknown;
      readonly headers?: Readonly<Record<string, string>>;
      readonly key?: string | null;
    },
  ): Promise<ApiAnswer>;
  /** Submits a job and fails unless it was accepted. */
  submit(body: unknown, headers?: Readonly<Record<string, string>>): Promise<ApiJob>;
  /** Resolves when the job is terminal; fails after `timeoutMs` (30,000). */
  finished(id: string, timeoutMs?: number): Promise<ApiJob>;
};

const TERMINAL: ReadonlySet<string> = new Set(["SUCCEEDED", "FAILED", "CANCELLED"]);

/** A client that keeps no idle connection for long: a gateway that was killed is dialled anew. */
export function createStackApi(options: { readonly gatewayUrl: string; readonly serviceKey: string }): StackApi {
  const dispatcher = new Agent({ keepAliveTimeout: 1_000, keepAliveMaxTimeout: 1_000 });

  const call: StackApi["call"] = async (method, path, { body, headers, key = options.serviceKey } = {}) => {
    const answer = await request(`${options.gatewayUrl}${path}`, {
      method,
      dispatcher,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, headers: answer.headers, body: parse(text) };
  };

  return {
    call,
    async submit(body, headers) {
      const answer = await call("POST", "/v1/jobs", { body, ...(headers === undefined ? {} : { headers }) });
      if (answer.status !== 202 && answer.status !== 200)
        throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
      return answer.body as ApiJob;
    },
    async finished(id, timeoutMs = 30_000) {
      const deadline = performance.now() + timeoutMs;
      for (;;) {
        const leftS = Math.ceil((deadline - performance.now()) / 1_000);
        if (leftS <= 0) throw new Error(`Job ${id} did not end within ${timeoutMs} ms`);
        const answer = await call("GET", `/v1/jobs/${id}`, { headers: { prefer: `wait=${Math.min(leftS, 10)}` } });
        if (answer.status !== 200) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
        const job = answer.body as ApiJob;
        if (TERMINAL.has(job.status)) return job;
      }
    },
  };
}

function parse(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
