import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createTestSignals } from "@keble-scraper/testkit";
import { Agent, request } from "undici";
import { z } from "zod";
import {
  createInternalClient,
  createInternalServer,
  createLogger,
  createProcedures,
  DEADLINE_HEADER,
  DependencyUnavailable,
  type HealthState,
  type InternalServer,
} from "../src/index.ts";

const TOKEN = "service-token-0123456789";
const lines: string[] = [];
const logger = createLogger({
  name: "test",
  level: "info",
  destination: { write: (line: string) => void lines.push(line) },
});
const signals = createTestSignals();
const { router, procedure } = createProcedures<{ readonly greeting: string }>();
const app = router({
  greet: procedure
    .input(z.strictObject({ name: z.string() }))
    .output(z.object({ text: z.string(), requestId: z.string(), leftMs: z.number() }))
    .query(({ ctx, input }) => ({
      text: `${ctx.greeting} ${input.name}`,
      requestId: ctx.requestId,
      leftMs: ctx.deadlineAt - Date.now(),
    })),
  explode: procedure.mutation((): string => {
    throw new Error("insert into jobs failed at postgres://user:CANARY@10.0.0.7/db");
  }),
  wait: procedure.mutation(async ({ ctx }) => {
    await signals.reach("waiting");
    await new Promise<void>((resolve) => {
      ctx.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    await signals.reach("aborted", ctx.signal.reason);
    return "aborted";
  }),
});
let state: HealthState = "ok";

async function start(): Promise<InternalServer> {
  const server = createInternalServer({
    name: "greeter",
    port: 0,
    router: app,
    context: { greeting: "hello" },
    serviceToken: TOKEN,
    checks: [{ name: "postgres", check: () => Promise.resolve(state) }],
    logger,
  });
  await server.start(new AbortController().signal);
  return server;
}

function connectTo(url: string, overrides: { readonly serviceToken?: string; readonly timeoutMs?: number } = {}) {
  return createInternalClient<typeof app>({
    url,
    serviceToken: TOKEN,
    timeoutMs: 5_000,
    part: "greeter",
    ...overrides,
  });
}

/** Handles a rejection from the start, for a call that ends while the test does something else. */
function thrownBy(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  );
}

let server: InternalServer;
let link: ReturnType<typeof connectTo>;
beforeAll(async () => {
  server = await start();
  link = connectTo(server.url);
});
afterAll(async () => {
  await link.close();
  await server.stop(performance.now());
});

describe("a call", () => {
  test("carries its input in the body, its request id and its deadline", async () => {
    const name = "é".repeat(100_000);
    const answer = await link.client.greet.query(
      { name },
      { context: { requestId: "request-7", deadlineAt: Date.now() + 900 } },
    );
    expect(answer.text).toBe(`hello ${name}`);
    expect(answer.requestId).toBe("request-7");
    expect(answer.leftMs).toBeGreaterThan(0);
    expect(answer.leftMs).toBeLessThanOrEqual(900);
  });

  test("gets a request id of its own when none is given", async () => {
    const { requestId } = await link.client.greet.query({ name: "a" });
    expect(requestId).toMatch(/^[0-9a-f-]{36}$/u);
  });

  test("ends at its deadline, and the service's work is aborted then", async () => {
    const call = link.client.wait.mutate(undefined, { context: { deadlineAt: Date.now() + 100 } });
    await expect(call).rejects.toMatchObject({ name: "DependencyUnavailable", part: "greeter", reason: "TIMEOUT" });
    await signals.reachedTimes("aborted", 1);
  });

  test("ends with its caller's reason, and the service's work is aborted then", async () => {
    const controller = new AbortController();
    const call = link.client.wait.mutate(undefined, { signal: controller.signal });
    await signals.reachedTimes("waiting", 2);
    controller.abort(new Error("the caller left"));
    await expect(call).rejects.toThrow("the caller left");
    await signals.reachedTimes("aborted", 2);
  });

  test("whose deadline has passed is not sent", async () => {
    const call = link.client.greet.query({ name: "a" }, { context: { deadlineAt: Date.now() - 1 } });
    await expect(call).rejects.toMatchObject({ reason: "TIMEOUT" });
  });

  test("that names a part that is away says so, without a host", async () => {
    const gone = await start();
    const { client, close } = connectTo(gone.url);
    await client.greet.query({ name: "a" });
    await gone.stop(performance.now());
    const error = await thrownBy(client.greet.query({ name: "a" }));
    expect(error).toBeInstanceOf(DependencyUnavailable);
    expect(String(error)).toBe("DependencyUnavailable: greeter is not available (UNREACHABLE)");
    await close();
  });

  test("an unexpected error leaves the service as its code alone, and is in its log without its secrets", async () => {
    const response = await request(`${server.url}/trpc/explode`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
    });
    const text = await response.body.text();
    expect(response.statusCode).toBe(500);
    expect(text).not.toMatch(/CANARY|10\.0\.0\.7|insert|stack|\.ts/u);
    await expect(link.client.explode.mutate()).rejects.toMatchObject({ reason: "FAULT" });
    const logged = lines.filter((line) => line.includes("call.faulted"));
    expect(logged.join("")).toContain("insert into jobs failed at [url]");
  });

  test("an input that the procedure does not take is refused, not logged as a fault", async () => {
    const before = lines.length;
    await expect(link.client.greet.query({ name: 7 as unknown as string })).rejects.toMatchObject({
      reason: "REFUSED",
    });
    expect(lines.slice(before)).toEqual([]);
  });
});

describe("the door", () => {
  test.each([
    ["no token", {}],
    ["another token", { authorization: `Bearer ${TOKEN}x` }],
    ["another scheme", { authorization: `Basic ${TOKEN}` }],
    ["an empty token", { authorization: "Bearer " }],
  ])("answers 401 to %s", async (_what, headers) => {
    const response = await request(`${server.url}/trpc/explode`, { method: "POST", headers });
    await response.body.dump();
    expect(response.statusCode).toBe(401);
  });

  test.each([
    ["-1", 408],
    ["0", 408],
    ["soon", 400],
    ["1e9", 400],
  ])("work with %s ms left is refused with %i", async (left, status) => {
    const response = await request(`${server.url}/trpc/explode`, {
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json", [DEADLINE_HEADER]: left },
    });
    await response.body.dump();
    expect(response.statusCode).toBe(status);
  });

  test("a body over the bound is answered 413", async () => {
    // The server ends the connection of a body it did not read: a dispatcher of its own keeps that from later requests.
    const dispatcher = new Agent();
    const response = await request(`${server.url}/trpc/explode`, {
      dispatcher,
      method: "POST",
      headers: { authorization: `Bearer ${TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify("x".repeat(17 * 1_024 * 1_024)),
    });
    await response.body.dump();
    expect(response.statusCode).toBe(413);
    await dispatcher.destroy();
  });

  test("a path that is not there is answered 404", async () => {
    const response = await request(`${server.url}/nothing`);
    await response.body.dump();
    expect(response.statusCode).toBe(404);
  });
});

describe("health", () => {
  async function ready(): Promise<{ readonly code: number; readonly body: unknown }> {
    const response = await request(`${server.url}/readyz`);
    return { code: response.statusCode, body: await response.body.json() };
  }

  test("a degraded part is shown and does not fail readiness; a part that is down does", async () => {
    state = "degraded";
    expect(await ready()).toEqual({
      code: 200,
      body: { status: "degraded", checks: [{ name: "postgres", status: "degraded" }] },
    });
    state = "down";
    expect((await ready()).code).toBe(503);
    const alive = await request(`${server.url}/healthz`);
    await alive.body.dump();
    expect(alive.statusCode).toBe(200);
    state = "ok";
    expect((await ready()).code).toBe(200);
  });
});

describe("stop", () => {
  test("lets a call in flight end, refuses new ones, and frees the port", async () => {
    const own = await start();
    const { port } = own;
    const { client, close } = connectTo(own.url);
    const call = client.wait.mutate(undefined, { context: { deadlineAt: Date.now() + 300 } });
    const ended = thrownBy(call);
    await signals.reachedTimes("waiting", 3);
    const stopped = own.stop(performance.now() + 10_000);
    expect(own.stop(0)).toBe(stopped);
    expect(await ended).toMatchObject({ reason: "TIMEOUT" });
    await stopped;
    const refused = await new Promise((resolve) => {
      connect(port, "127.0.0.1").once("error", resolve).once("connect", resolve);
    });
    expect(refused).toMatchObject({ code: "ECONNREFUSED" });
    await close();
  });

  test("cuts a call that outlives the grace", async () => {
    const own = await start();
    const { client, close } = connectTo(own.url);
    const call = client.wait.mutate();
    const ended = thrownBy(call);
    await signals.reachedTimes("waiting", 4);
    await own.stop(performance.now());
    expect(await ended).toMatchObject({ reason: "UNREACHABLE" });
    await close();
  });

  test("is safe before start, and a taken port fails the start", async () => {
    const options = { router: app, context: { greeting: "" }, serviceToken: TOKEN, checks: [], logger };
    const idle = createInternalServer({ name: "idle", port: 0, ...options });
    await idle.stop(0);
    const second = createInternalServer({ name: "second", port: server.port, ...options });
    await expect(second.start(new AbortController().signal)).rejects.toMatchObject({ code: "EADDRINUSE" });
    await second.stop(0);
  });
});
