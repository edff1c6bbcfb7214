import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { migrate } from "@keble-scraper/db";
import { PROCESS_KINDS } from "@keble-scraper/service";
import { createTestDatabase, type TestDatabase } from "@keble-scraper/testkit";
import { CommanderError } from "commander";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { withDatabase } from "../src/with-database.ts";
import { PROCESSES } from "../src/process-table.ts";
import { textOfProgram } from "./run-program.ts";

let database: TestDatabase;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "keble-commands-"));
  database = await createTestDatabase({ migrate });
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await database[Symbol.asyncDispose]();
});

function run(args: string[], env: Record<string, string> = {}): Promise<string> {
  return textOfProgram(args, {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: database.url,
    SCRAPER_MIGRATION_DATABASE_URL: database.migrationUrl,
    SCRAPER_STATE_DIRECTORY: join(folder, new URL(env["SCRAPER_DATABASE_URL"] ?? database.url).pathname),
    ...env,
  });
}

describe("keble-scraper keys", () => {
  it("makes the first operator key once, lists it without its secret, and makes another first one after it was revoked", async () => {
    const secret = await run(["keys", "bootstrap"]);
    expect(secret).toMatch(/^ks_live_\S{43}$/);
    await expect(run(["keys", "bootstrap"])).rejects.toMatchObject({ reason: "USAGE" });
    const listed = await run(["keys", "list"]);
    expect(listed).not.toContain(secret);
    const key = JSON.parse(listed) as { id: string; kind: string };
    expect(key.kind).toBe("OPERATOR");
    expect(JSON.parse(await run(["keys", "revoke", key.id]))).toMatchObject({
      revokedAt: expect.any(String) as string,
    });
    expect(await run(["keys", "bootstrap"])).toMatch(/^ks_live_/);
  });

  it("makes a service key with its caller, scopes and expiry", async () => {
    const args = [
      "--name",
      "orders",
      "--caller",
      "shop",
      "--scope",
      "jobs:read",
      "jobs:write",
      "--expires",
      "2040-01-01T00:00:00Z",
    ];
    expect(JSON.parse(await run(["keys", "create", ...args]))).toMatchObject({
      name: "orders",
      kind: "SERVICE",
      callerId: "shop",
      scopes: ["jobs:read", "jobs:write"],
      expiresAt: "2040-01-01T00:00:00.000Z",
    });
  });

  it("refuses what the public API would refuse, and ids of no key", async () => {
    await expect(run(["keys", "create", "--name", "a b"])).rejects.toMatchObject({ reason: "USAGE" });
    await expect(run(["keys", "create", "--name", "a", "--caller", "b"])).rejects.toMatchObject({ reason: "USAGE" });
    await expect(run(["keys", "create", "--name", "a", "--caller", "b", "--scope", "all"])).rejects.toThrow(
      CommanderError,
    );
    await expect(run(["keys", "revoke", "1"])).rejects.toMatchObject({ reason: "USAGE" });
    await expect(run(["keys", "revoke", "00000000-0000-7000-8000-000000000000"])).rejects.toMatchObject({
      reason: "USAGE",
    });
  });
});

describe("the audit of keble-scraper keys", () => {
  it("is kept for as long as the settings say", async () => {
    await using fresh = await createTestDatabase({ migrate });
    const env = {
      SCRAPER_DATABASE_URL: fresh.url,
      SCRAPER_MIGRATION_DATABASE_URL: fresh.migrationUrl,
      SCRAPER_AUDIT_RETENTION_DAYS: "1.5",
    };
    await run(["keys", "bootstrap"], env);
    const { id } = JSON.parse(await run(["keys", "create", "--name", "second"], env)) as { id: string };
    await run(["keys", "revoke", id], env);
    const rows = await withDatabase(
      fresh.url,
      ({ commands }) => commands<{ action: string; hours: number }[]>`
        select action, round(extract(epoch from expires_at - occurred_at) / 3600)::int as hours
        from audit_events order by id`,
    );
    expect([...rows]).toEqual([
      { action: "api-key.created", hours: 36 },
      { action: "api-key.created", hours: 36 },
      { action: "api-key.revoked", hours: 36 },
    ]);
  });
});

describe("keble-scraper migrate", () => {
  it("brings an empty database up to date", async () => {
    await using empty = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
    const env = { SCRAPER_DATABASE_URL: empty.url, SCRAPER_MIGRATION_DATABASE_URL: empty.migrationUrl };
    expect(await run(["migrate"], env)).toMatch(
      /^Applied [1-9]\d* migrations\nClaimed the artifact store for test\/test_\w+: \S+ artifacts$/,
    );
    expect(await run(["keys", "bootstrap"], env)).toMatch(/^ks_live_/);
  });

  it("R3 says so when one role is both the owner and the app", async () => {
    const env = { SCRAPER_DATABASE_URL: database.migrationUrl };
    expect(await run(["migrate"], env)).toContain("only triggers protect");
    expect(await run(["migrate"])).not.toContain("only triggers protect");
  });

  it("does nothing to a database that is up to date", async () => {
    await run(["migrate"]);
    expect(await run(["migrate"])).toBe("The database is up to date");
  });
});

describe("a database that can't be asked", () => {
  it("ends `keys` and `migrate` with one sentence that names the setting, without URL and SQL", async () => {
    const closed = new URL(database.url);
    closed.port = "1";
    const absent = new URL(database.url);
    absent.pathname = "/no_such_database";
    for (const [url, code] of [
      [closed.href, "ECONNREFUSED"],
      [absent.href, "3D000"],
    ] as const) {
      const message = (setting: string) => `${setting}: no query was answered there (${code}).`;
      const one = { SCRAPER_DATABASE_URL: url, SCRAPER_MIGRATION_DATABASE_URL: url };
      const expected = { reason: "SERVER_MISSING", message: message("SCRAPER_DATABASE_URL") };
      for (const args of [["keys", "list"], ["keys", "bootstrap"], ["migrate"]]) {
        await expect(run(args, one)).rejects.toMatchObject(expected);
      }
      await expect(run(["migrate"], { SCRAPER_MIGRATION_DATABASE_URL: url })).rejects.toMatchObject({
        message: message("SCRAPER_MIGRATION_DATABASE_URL"),
      });
    }
  });

  it("ends `keys` with one sentence while nothing was migrated", async () => {
    await using empty = await createTestDatabase({ migrate: () => Promise.resolve(), template: "empty" });
    await expect(run(["keys", "list"], { SCRAPER_DATABASE_URL: empty.url })).rejects.toMatchObject({
      reason: "SERVER_MISSING",
      message: "SCRAPER_DATABASE_URL: the database there has no schema yet. Run `keble-scraper migrate` first.",
    });
  });
});

describe("settings of a command", () => {
  it("O1 every command but `up` wants SCRAPER_ENVIRONMENT, and all faults come at once, by name, without values", async () => {
    const env = {
      SCRAPER_ENVIRONMENT: " ",
      SCRAPER_GATEWAY_PORT: "99999999",
      SCRAPER_DATABASE_URL: "mysql://secret-host/x",
    };
    for (const args of [
      ["gateway"],
      ["worker", "fetch"],
      ["beat"],
      ["migrate"],
      ["keys", "list"],
      ["together", "beat"],
    ]) {
      const error: unknown = await run(args, env).catch((caught: unknown) => caught);
      const { message } = error as Error;
      expect(error).toMatchObject({ reason: "USAGE" });
      for (const name of Object.keys(env)) expect(message).toContain(name);
      for (const value of ["99999999", "secret-host"]) expect(message).not.toContain(value);
    }
  });

  it("names settings that do not exist, and goes on", async () => {
    expect(await run(["migrate"], { SCRAPER_LEASE_SECOND: "5" })).toContain("SCRAPER_LEASE_SECOND is no setting");
  });

  it("`up` runs in development and test only", async () => {
    await expect(run(["up"], { SCRAPER_ENVIRONMENT: "production" })).rejects.toMatchObject({ reason: "USAGE" });
  });
});

describe("what a worker needs on its machine", () => {
  const env = {
    SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
    SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
    SCRAPER_SECRET_KEY: "ab".repeat(32),
  };

  it.each([["worker", "fetch"], ["up"]])(
    "O1 a file of authorities that is none is told by its setting: %s %s",
    async (...args) => {
      const files = {
        SCRAPER_DATACENTER_PROXY_URL: "http://user:canary-password@127.0.0.1:9",
        SCRAPER_DATACENTER_PROXY_CA_FILE: "/nowhere/canary.pem",
        SCRAPER_RESIDENTIAL_PROXY_URL: "http://user:canary-password@127.0.0.1:9",
        SCRAPER_RESIDENTIAL_PROXY_CA_FILE: fileURLToPath(import.meta.url),
      };
      const error: unknown = await run(args, { ...env, ...files }).catch((caught: unknown) => caught);
      expect(error).toMatchObject({ reason: "USAGE" });
      const { message } = error as Error;
      expect(message).toContain("SCRAPER_DATACENTER_PROXY_CA_FILE");
      expect(message).toContain("SCRAPER_RESIDENTIAL_PROXY_CA_FILE");
      expect(message).not.toContain("canary");
    },
  );

  it("a browser that is not there is told without a stack", async () => {
    const browser = { SCRAPER_LOCAL_RENDER: "on", SCRAPER_CHROMIUM_PATH: "/nowhere/chromium" };
    await expect(run(["worker", "render"], { ...env, ...browser })).rejects.toMatchObject({
      reason: "USAGE",
      message: expect.stringContaining("SCRAPER_CHROMIUM_PATH") as string,
    });
  });
});

describe("the command line", () => {
  it("has help for every command and refuses unknown ones", async () => {
    await expect(run(["nonsense"])).rejects.toThrow(CommanderError);
    await expect(run(["up", "--fetch-workers=0"])).rejects.toThrow(CommanderError);
    await expect(run(["together", "nonsense"])).rejects.toThrow(CommanderError);
    const help: unknown = await run(["--help"]).catch((error: unknown) => error);
    expect(help).toMatchObject({ code: "commander.helpDisplayed", exitCode: 0 });
  });
});

describe("process kinds", () => {
  const root = new URL("../../../", import.meta.url);
  const read = (file: string) => JSON.parse(readFileSync(new URL(file, root), "utf8")) as Record<string, object>;

  it("are what settings say who reads them, each with a command, an npm script and a turbo task of its name", async () => {
    const kinds = Object.keys(PROCESSES);
    expect(kinds.toSorted()).toEqual(PROCESS_KINDS.filter((kind) => kind !== "migrate" && kind !== "up").toSorted());
    const scripts = read("package.json")["scripts"] as Record<string, string>;
    const tasks = read("turbo.json")["tasks"];
    for (const kind of kinds) {
      const words = kind.startsWith("worker-") ? ["worker", kind.slice("worker-".length)] : [kind];
      const name = words.join(":");
      expect(scripts[name], name).toBe(`node apps/cli/bin/keble-scraper.js ${words.join(" ")}`);
      expect(tasks).toHaveProperty([`//#${name}`]);
      // With settings that can't be read each says so, which means that there is such a command.
      await expect(run(words, { SCRAPER_ENVIRONMENT: "nowhere" }), name).rejects.toMatchObject({ reason: "USAGE" });
    }
  });
});
