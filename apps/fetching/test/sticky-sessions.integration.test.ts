import { createLogger } from "@keble-scraper/service";
import { testRedis } from "@keble-scraper/testkit";
import { Redis } from "ioredis";
import { expect, it } from "vitest";
import { createRedisScripts } from "../src/admission/redis-scripts.ts";
import { createStickySessions, type StickySessions } from "../src/sticky/sticky-sessions.ts";

const KEY = { callerId: "acme", hostKey: "shop.example.com", route: "RESIDENTIAL", stickyKey: "basket-1" };

/** Sessions of two workers on one Redis; `cut` takes it from both. */
async function openRig(ttlMs = 60_000) {
  const { url, prefix } = await testRedis();
  const logger = createLogger({ name: "t", level: "silent" });
  const links = [1, 2].map(() => createRedisScripts({ redisUrl: url, logger }));
  const start = () => Promise.all(links.map((link) => link.start(new AbortController().signal)));
  const cut = () => Promise.all(links.map((link) => link.stop(0)));
  await start();
  const plain = new Redis(url);
  const [one, other] = links.map((redis) => createStickySessions({ redis, prefix, ttlMs })) as [
    StickySessions,
    StickySessions,
  ];
  const keys = () => plain.keys(`${prefix}*`);
  return {
    one,
    other,
    plain,
    keys,
    start,
    cut,
    async [Symbol.asyncDispose]() {
      await cut();
      const left = await keys();
      if (left.length > 0) await plain.del(left);
      plain.disconnect();
    },
  };
}

it("W5 jobs of one caller, host, route and key share a session over workers; any difference is another one", async () => {
  await using rig = await openRig();
  const id = await rig.one.sessionFor(KEY);
  expect(id).toMatch(/^[a-z0-9]{16,32}$/u);
  expect(await rig.other.sessionFor(KEY)).toBe(id);
  const others = await Promise.all(
    [{ callerId: "else" }, { hostKey: "a.example.com" }, { route: "DATACENTER" }, { stickyKey: "basket-2" }].map(
      (other) => rig.one.sessionFor({ ...KEY, ...other }),
    ),
  );
  expect(new Set([id, ...others]).size).toBe(5);
  // Neither the caller nor its key can be read from what Redis keeps.
  expect((await rig.keys()).join(" ")).not.toMatch(/acme|basket|shop/u);
});

it("W5 equal first uses on two workers at once are one session", async () => {
  await using rig = await openRig();
  const ids = await Promise.all(
    Array.from({ length: 20 }, (_, index) => (index % 2 === 0 ? rig.one : rig.other).sessionFor(KEY)),
  );
  expect(new Set(ids).size).toBe(1);
});

it("W5 a block rotates the session once, however many jobs it hit", async () => {
  await using rig = await openRig();
  const blocked = await rig.one.sessionFor(KEY);
  await rig.one.rotate(KEY, blocked);
  const fresh = await rig.one.sessionFor(KEY);
  expect(fresh).not.toBe(blocked);
  await rig.other.rotate(KEY, blocked);
  expect(await rig.other.sessionFor(KEY)).toBe(fresh);
  await rig.other.rotate(KEY);
  expect(await rig.one.sessionFor(KEY)).not.toBe(fresh);
});

it("W5 a session lives on with each use and expires after the last", async () => {
  await using rig = await openRig(1_500);
  const id = await rig.one.sessionFor(KEY);
  const [key] = await rig.keys();
  await expect.poll(() => rig.plain.pttl(key!)).toBeLessThan(1_000);
  expect(await rig.one.sessionFor(KEY)).toBe(id);
  expect(await rig.plain.pttl(key!)).toBeGreaterThan(1_000);
  await expect.poll(() => rig.plain.exists(key!), { timeout: 5_000 }).toBe(0);
  expect(await rig.one.sessionFor(KEY)).not.toBe(id);
});

it("W5 with Redis away each worker has sessions of its own, and a rotation counts when Redis is back", async () => {
  await using rig = await openRig();
  const shared = await rig.one.sessionFor(KEY);
  await rig.cut();
  const alone = await rig.one.sessionFor(KEY);
  expect(alone).not.toBe(shared);
  expect(await rig.one.sessionFor(KEY)).toBe(alone);
  expect(await rig.other.sessionFor(KEY)).not.toBe(alone);
  await rig.one.rotate(KEY);
  expect(await rig.one.sessionFor(KEY)).not.toBe(alone);
  await rig.start();
  expect(await rig.one.sessionFor(KEY)).not.toBe(shared);
});
