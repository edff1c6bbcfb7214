import { once } from "node:events";
import { createServer } from "node:net";
import type { Principal } from "@keble-scraper/contract";
import { migrate } from "@keble-scraper/db";
import {
  createInternalClient,
  createInternalServer,
  createLogger,
  createProcedures,
  parseSettings,
} from "@keble-scraper/service";
import { createTestDatabase } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { createIntake } from "../src/app.ts";
import type { IntakeRouter } from "../src/router.ts";

const SERVICE_TOKEN = "a-service-token-of-the-tests";
const PRINCIPAL: Principal = { keyId: crypto.randomUUID(), kind: "SERVICE", callerId: "acme", scopes: [] };

const DIRECT = { route: "DIRECT", health: "HEALTHY", priceMicros: 0, attemptMs: 60_000, narrows: [] };

/** The service that intake asks for the routes there are. */
async function startFetching() {
  const { router, procedure } = createProcedures();
  const server = createInternalServer({
    name: "fetching",
    port: 0,
    router: router({ listRoutes: procedure.query(() => [DIRECT]) }),
    context: {},
    serviceToken: SERVICE_TOKEN,
    checks: [],
    logger: createLogger({ name: "fetching", level: "silent" }),
  });
  await server.start(new AbortController().signal);
  return { url: server.url, [Symbol.asyncDispose]: () => server.stop(performance.now()) };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}

// The stop has a whole minute of grace: a wait that went on would hold it, or be cut without an answer.
test("a wait in flight is answered with the job's current state when the service stops", async () => {
  await using database = await createTestDatabase({ migrate });
  await using fetching = await startFetching();
  const port = await freePort();
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_LOG_LEVEL: "silent",
    SCRAPER_DATABASE_URL: database.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: SERVICE_TOKEN,
    SCRAPER_SECRET_KEY: "5a".repeat(32),
    SCRAPER_INTERNAL_PORT: String(port),
    SCRAPER_FETCHING_URL: fetching.url,
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
  const intake = createIntake(parsed.value);
  await intake.start();
  const { client, close } = createInternalClient<IntakeRouter>({
    url: `http://127.0.0.1:${port}`,
    serviceToken: SERVICE_TOKEN,
    timeoutMs: 65_000,
  });
  try {
    const body = { target: { url: "https://shop.example.com/" } };
    const submitted = await client.submitJob.mutate({ principal: PRINCIPAL, body });
    if (!submitted.ok) throw new Error(submitted.failure.code);
    const { id } = submitted.value.job;
    const waiting = client.getJob.query({ principal: PRINCIPAL, id, waitSeconds: 60 });
    // On another connection, sent after it and answered before it: the wait has arrived.
    await client.getJob.query({ principal: PRINCIPAL, id });
    await intake.stop(60_000);
    expect(await waiting).toMatchObject({ ok: true, value: { id, status: "QUEUED" } });
  } finally {
    await close();
    await intake.stop(0);
  }
}, 30_000);
