import { Redis } from "ioredis";
import postgres from "postgres";
import { describe, expect, it } from "vitest";
import { assertRedisEmpty, createTestDatabase, testRedis } from "../src/index.ts";

let migrations = 0;
const migrate = async ({ migrationUrl, appUrl }: { migrationUrl: string; appUrl: string }) => {
  migrations += 1;
  await using sql = open(migrationUrl);
  await sql.unsafe("create table things (n int)");
  await sql.unsafe(`grant select, insert on things to ${new URL(appUrl).username}`);
};
const options = { migrate, template: "testkit" };

function open(url: string) {
  const sql = postgres(url, { max: 1, onnotice: () => undefined });
  return Object.assign(sql, { [Symbol.asyncDispose]: () => sql.end({ timeout: 1 }) });
}

describe("createTestDatabase", () => {
  it("migrates once, and gives each caller rows of its own", async () => {
    await using first = await createTestDatabase(options);
    await using second = await createTestDatabase(options);
    expect(migrations).toBe(1);
    await using a = open(first.url);
    await using b = open(second.url);
    await a`insert into things values (1)`;
    expect(await b`select * from things`).toHaveLength(0);
  });

  it("lets several at once wait for one migration", async () => {
    const before = migrations;
    const databases = await Promise.all([1, 2, 3, 4].map(() => createTestDatabase({ migrate, template: "together" })));
    expect(migrations).toBe(before + 1);
    for (const database of databases) await database[Symbol.asyncDispose]();
  });

  it("gives the app role rows but not the schema", async () => {
    await using database = await createTestDatabase(options);
    await using app = open(database.url);
    await expect(app`alter table things add column m int`).rejects.toMatchObject({ code: "42501" });
    await using owner = open(database.migrationUrl);
    await owner`alter table things add column m int`;
  });

  it("fails its disposal when a connection was left open, and drops the database all the same", async () => {
    const database = await createTestDatabase(options);
    const leaked = postgres(database.url, { max: 1, connection: { application_name: "leaky" } });
    await leaked`select 1`;
    await expect(database[Symbol.asyncDispose]()).rejects.toThrow(/left open.*\n.*leaky/);
    await leaked.end({ timeout: 1 });
    await using again = open(database.url);
    await expect(again`select 1`).rejects.toMatchObject({ code: "3D000" });
  });
});

describe("testRedis", () => {
  it("gives every caller its own prefix and sees what is left under it", async () => {
    const [mine, other] = [await testRedis(), await testRedis()];
    expect(mine.prefix).not.toBe(other.prefix);
    const redis = new Redis(mine.url);
    await redis.set(`${mine.prefix}a`, "1");
    await expect(assertRedisEmpty(mine)).rejects.toThrow(`${mine.prefix}a`);
    await assertRedisEmpty(other);
    await redis.del(`${mine.prefix}a`);
    await assertRedisEmpty(mine);
    redis.disconnect();
  });
});
