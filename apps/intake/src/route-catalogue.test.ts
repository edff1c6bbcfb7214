import { expect, test } from "vitest";
import { createRouteCatalogue } from "./route-catalogue.ts";

const DIRECT = [
  { route: "DIRECT" as const, health: "HEALTHY" as const, priceMicros: 0, attemptMs: 60_000, narrows: [] },
];

test("routes are asked for once, and again after half a minute", async () => {
  let now = 0;
  let asked = 0;
  const routes = createRouteCatalogue({
    monotonicMs: () => now,
    ask: () => {
      asked += 1;
      return Promise.resolve(DIRECT);
    },
  });
  await Promise.all([routes.list(), routes.list()]);
  expect(await routes.list()).toEqual(DIRECT);
  expect(asked).toBe(1);
  now = 30_000;
  await routes.list();
  expect(asked).toBe(2);
});

test("a check knows of a quarantine within a second, and asks for all who submit", async () => {
  let now = 0;
  let asked = 0;
  const routes = createRouteCatalogue({
    monotonicMs: () => now,
    ask: () => {
      asked += 1;
      return Promise.resolve(DIRECT);
    },
  });
  await routes.list();
  now = 999;
  await routes.listNow();
  expect(asked).toBe(1);
  now = 1_000;
  await routes.listNow();
  expect(asked).toBe(2);
  now = 30_999;
  await routes.list();
  expect(asked).toBe(2);
});

test("while fetching can't be asked, what was known last goes on", async () => {
  let now = 0;
  let isDown = false;
  const routes = createRouteCatalogue({
    monotonicMs: () => now,
    ask: () => (isDown ? Promise.reject(new Error("down")) : Promise.resolve(DIRECT)),
  });
  await routes.list();
  isDown = true;
  now = 60_000;
  expect(await routes.list()).toEqual(DIRECT);
});

test("routes that were never known are a fault, and are asked for again at the next call", async () => {
  let isDown = true;
  const routes = createRouteCatalogue({
    monotonicMs: () => 0,
    ask: () => (isDown ? Promise.reject(new Error("down")) : Promise.resolve(DIRECT)),
  });
  await expect(routes.list()).rejects.toThrow("down");
  isDown = false;
  expect(await routes.list()).toEqual(DIRECT);
});
