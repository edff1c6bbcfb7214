import type { Database } from "@keble-scraper/db";
import { describe, expect, it } from "vitest";
import { createKeyStore } from "./key-store.ts";

/** A key store whose database answers when the test says so, each look-up with the same live key. */
function createSlowStore() {
  const owed: (() => void)[] = [];
  let nowMs = 0;
  let asked = 0;
  const row = { id: "k", caller_id: "acme", kind: "SERVICE", scopes: [], expires_in_ms: null };
  const commands = () => {
    asked += 1;
    return new Promise((resolve) => owed.push(() => resolve([row])));
  };
  const store = createKeyStore({ commands, reads: {} } as unknown as Pick<Database, "commands" | "reads">, {
    now: () => nowMs,
    auditDays: 1,
  });
  return {
    authenticate: (secret: string) => store.authenticate(`Bearer ${secret}`),
    asked: () => asked,
    answer: () => owed.splice(0).forEach((resolve) => resolve()),
    passTime: (milliseconds: number) => (nowMs += milliseconds),
  };
}

describe("the look-up of a key", () => {
  it("is remembered from when it was asked, not from when it was answered", async () => {
    const store = createSlowStore();
    const late = store.authenticate("one");
    store.passTime(4_000);
    store.answer();
    expect((await late).ok).toBe(true);
    store.passTime(999);
    await store.authenticate("one");
    expect(store.asked()).toBe(1);
    store.passTime(2);
    const again = store.authenticate("one");
    expect(store.asked()).toBe(2);
    store.answer();
    await again;
  });

  it("is refused while a thousand others wait for their answer", async () => {
    const store = createSlowStore();
    const waiting = Array.from({ length: 1_000 }, (_, index) => store.authenticate(`key-${index}`));
    await expect(store.authenticate("one-more")).rejects.toMatchObject({ name: "DependencyUnavailable" });
    expect(store.asked()).toBe(1_000);
    store.answer();
    await Promise.all(waiting);
    const next = store.authenticate("one-more");
    store.answer();
    expect((await next).ok).toBe(true);
  });
});
