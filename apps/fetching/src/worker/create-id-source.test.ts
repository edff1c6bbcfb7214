import { expect, test } from "vitest";
import { createIdSource } from "./create-id-source.ts";

test("ids are UUIDs version 7 of this moment, and no two are the same over many refills of the pool", () => {
  const createId = createIdSource();
  const ids = Array.from({ length: 2_000 }, createId);
  expect(new Set(ids).size).toBe(2_000);
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  const madeAt = Number.parseInt((ids[0] ?? "").replaceAll("-", "").slice(0, 12), 16);
  expect(Math.abs(madeAt - Date.now())).toBeLessThan(60_000);
});
