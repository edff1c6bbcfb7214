import { Writable } from "node:stream";
import type { CreatedApiKey, Scope } from "@keble-scraper/contract";
import { createDatabase, migrate, type Sql } from "@keble-scraper/db";
import { createApiKey } from "@keble-scraper/db/commands/keys";
import { createLogger, parseSettings, SYSTEM_CLOCK } from "@keble-scraper/service";
import { createTestDatabase, startTcpProxy, type TcpProxy } from "@keble-scraper/testkit";
import { createGateway, type Gateway } from "../src/app.ts";
import { startStandIns, type StandIns } from "./stand-ins.ts";

/** A running gateway with its own database, services that a test speaks for, and keys of each kind. */
export type OpenGateway = AsyncDisposable & {
  readonly gateway: Gateway;
  readonly url: string;
  readonly services: StandIns;
  readonly serviceKey: CreatedApiKey;
  readonly operatorKey: CreatedApiKey;
  /** Everything logged so far, as text. */
  log(): string;
  /** Between the gateway and Postgres, with `viaProxy`. */
  readonly proxy: TcpProxy;
  /** Runs something against the database as another process would. */
  elsewhere<T>(run: (sql: Sql) => Promise<T>): Promise<T>;
  /** Sets the gateway's monotonic clock ahead. */
  passTime(milliseconds: number): void;
  makeKey(key: { callerId?: string; scopes?: Scope[]; expiresAt?: Date }): Promise<CreatedApiKey>;
  /** A request with JSON and a key; `key` null sends none. */
  send(method: string, path: string, options?: SendOptions): Promise<Answer>;
};

export type SendOptions = {
  readonly key?: string | null;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
};
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: Record<string, unknown> };

const SERVICE_TOKEN = "a-token-of-the-test-that-is-long-enough-0123456789";

export async function openGateway(options: { readonly viaProxy?: boolean } = {}): Promise<OpenGateway> {
  const database = await createTestDatabase({ migrate });
  const proxy = await startTcpProxy({ target: database.url });
  const services = await startStandIns(SERVICE_TOKEN);
  const parsed = parseSettings({
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: options.viaProxy === true ? proxy.through(database.url) : database.url,
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: SERVICE_TOKEN,
    SCRAPER_SECRET_KEY: Buffer.alloc(32, 7).toString("base64"),
    SCRAPER_AUDIT_RETENTION_DAYS: "1.5",
    SCRAPER_INTAKE_URL: services.urls.intake,
    SCRAPER_ARTIFACTS_URL: services.urls.artifacts,
    SCRAPER_CALLBACKS_URL: services.urls.callbacks,
    SCRAPER_FETCHING_URL: services.urls.fetching,
    SCRAPER_RETENTION_URL: services.urls.retention,
  });
  if (!parsed.ok) {
    throw new Error(JSON.stringify(parsed.faults));
  }
  const lines: string[] = [];
  const destination = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push(chunk.toString());
      done();
    },
  });
  const settings = { ...parsed.value, gateway: { host: "127.0.0.1", port: 0 } };
  let aheadMs = 0;
  const gateway = createGateway(settings, {
    clock: { monotonicMs: () => SYSTEM_CLOCK.monotonicMs() + aheadMs, wallMs: () => SYSTEM_CLOCK.wallMs() },
    logger: createLogger({ name: "gateway", level: "info", destination }),
  });
  await gateway.start();

  const elsewhere = async <T>(run: (sql: Sql) => Promise<T>): Promise<T> => {
    const pools = createDatabase({
      url: database.url,
      applicationName: "another-process",
      commandConnections: 1,
      readConnections: 1,
      statementTimeoutMs: 5_000,
    });
    try {
      return await run(pools.commands);
    } finally {
      await pools.stop(performance.now() + 1_000);
    }
  };
  const makeKey: OpenGateway["makeKey"] = ({ callerId, scopes, expiresAt }) =>
    elsewhere((sql) =>
      createApiKey(
        sql,
        {
          name: "test",
          kind: callerId === undefined ? "OPERATOR" : "SERVICE",
          callerId: callerId ?? null,
          scopes: callerId === undefined ? [] : (scopes ?? ALL_SCOPES),
          expiresAt: expiresAt ?? null,
        },
        { actor: "system:test", requestId: null },
      ),
    );
  const serviceKey = await makeKey({ callerId: "acme" });
  const operatorKey = await makeKey({});

  return {
    gateway,
    url: gateway.url,
    services,
    serviceKey,
    operatorKey,
    log: () => lines.join(""),
    makeKey,
    proxy,
    elsewhere,
    passTime(milliseconds) {
      aheadMs += milliseconds;
    },
    async send(method, path, { key = serviceKey.secret, body, headers, signal } = {}) {
      const response = await fetch(gateway.url + path, {
        method,
        redirect: "manual",
        headers: {
          ...(key === null ? {} : { authorization: `Bearer ${key}` }),
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      });
      const text = await response.text();
      return {
        status: response.status,
        headers: response.headers,
        body: text === "" ? {} : (JSON.parse(text) as Record<string, unknown>),
      };
    },
    async [Symbol.asyncDispose]() {
      await gateway.stop(0);
      await services.stop();
      await proxy[Symbol.asyncDispose]();
      await database[Symbol.asyncDispose]();
    },
  };
}

const ALL_SCOPES: Scope[] = [
  "jobs:read",
  "jobs:write",
  "artifacts:read",
  "artifacts:download",
  "artifacts:pin",
  "callbacks:manage",
];
