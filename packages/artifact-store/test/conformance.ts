import { createHash, randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import type { Readable } from "node:stream";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type BinaryKey,
  type BinaryStore,
  createGeneration,
  formatBinaryKey,
  type Spool,
  type SpooledBody,
} from "../src/index.ts";

/** What one backend needs to be put through the suite. `store` is started and empty. */
export type StoreUnderTest = { readonly store: BinaryStore; readonly spool: Spool; close(): Promise<void> };

/** What every binary store guarantees, whatever its backend. */
export function describeBinaryStore(name: string, open: () => Promise<StoreUnderTest>): void {
  describe(`binary store: ${name}`, () => {
    let subject: StoreUnderTest;
    beforeAll(async () => {
      subject = await open();
    });
    afterAll(async () => {
      await subject.close();
    });

    async function spooled(bytes: Uint8Array): Promise<SpooledBody> {
      return spoolBytes(subject.spool, bytes);
    }
    async function stored(bytes: Uint8Array, generation = createGeneration()): Promise<BinaryKey> {
      const body = await spooled(bytes);
      const key = { sha256: body.sha256, generation };
      await subject.store.put(body, key);
      await body.discard();
      return key;
    }

    test.each([
      ["0 bytes", 0],
      ["1 byte", 1],
      ["64 KiB", 65_536],
      ["256 KiB", 262_144],
      ["256 KiB and a byte", 262_145],
      ["12 MiB", 12 * 1024 * 1024 + 7],
    ])("A1 a body of %s comes back byte for byte", async (_, size) => {
      const bytes = randomBytes(size);
      const key = await stored(bytes);
      expect(await subject.store.head(key)).toEqual({ sizeBytes: size });
      expect(await hashOf(await subject.store.read(key))).toBe(key.sha256);
    });

    test("an object that is not there has no head and no bytes, and is deleted without complaint", async () => {
      const key = { sha256: createHash("sha256").update(randomBytes(8)).digest("hex"), generation: createGeneration() };
      expect(await subject.store.head(key)).toBeNull();
      expect(await subject.store.read(key)).toBeNull();
      expect(await subject.store.read(key, { start: 0, end: 0 })).toBeNull();
      await subject.store.delete(key);
    });

    test("A2 equal bytes under two generations are two objects", async () => {
      const bytes = randomBytes(100);
      const [first, second] = [await stored(bytes), await stored(bytes)];
      expect(first.sha256).toBe(second.sha256);
      await subject.store.delete(first);
      expect(await subject.store.head(first)).toBeNull();
      expect(await subject.store.head(second)).toEqual({ sizeBytes: 100 });
    });

    test("a put that is sent again leaves the object as it is", async () => {
      const bytes = randomBytes(1000);
      const generation = createGeneration();
      const key = await stored(bytes, generation);
      expect(await stored(bytes, generation)).toEqual(key);
      expect(await hashOf(await subject.store.read(key))).toBe(key.sha256);
    });

    test("equal puts at once all succeed and leave one whole object", async () => {
      const bytes = randomBytes(300_000);
      const generation = createGeneration();
      const keys = await Promise.all(Array.from({ length: 8 }, async () => stored(bytes, generation)));
      expect(await hashOf(await subject.store.read(keys[0]!))).toBe(keys[0]!.sha256);
    });

    test.each([
      ["the first byte", 0, 0],
      ["the last byte", 9, 9],
      ["the middle", 3, 6],
      ["all of it", 0, 9],
    ])("a range gives %s and nothing else", async (_, start, end) => {
      const key = await stored(Buffer.from("0123456789"));
      const stream = await subject.store.read(key, { start, end });
      expect(await text(stream!)).toBe("0123456789".slice(start, end + 1));
    });

    test("a body whose hash is not the key's is not stored", async () => {
      const body = await spooled(Buffer.from("one"));
      const key = { sha256: createHash("sha256").update("two").digest("hex"), generation: createGeneration() };
      await expect(subject.store.put(body, key)).rejects.toThrow("hash");
      expect(await subject.store.head(key)).toBeNull();
      await body.discard();
    });

    test.each([
      ["a step up", { generation: "../../../../../etc" }],
      ["an absolute path", { generation: "/etc/passwd" }],
      ["an upper-case hash", { sha256: "AB".repeat(32) }],
      ["an empty hash", { sha256: "" }],
    ])("A5 a key with %s is a fault in every call", async (_, wrong) => {
      const body = await spooled(Buffer.from("x"));
      const key = { sha256: body.sha256, generation: createGeneration(), ...wrong };
      await expect(subject.store.put({ ...body, sha256: key.sha256 }, key)).rejects.toThrow("not a binary key");
      await expect(subject.store.head(key)).rejects.toThrow("not a binary key");
      await expect(subject.store.read(key)).rejects.toThrow("not a binary key");
      await expect(subject.store.delete(key)).rejects.toThrow("not a binary key");
      await body.discard();
    });

    test("a listing names every object once, in bounded pages, in key order", async () => {
      const keys = await Promise.all(Array.from({ length: 25 }, async () => stored(randomBytes(20))));
      const seen: string[] = [];
      let cursor: string | null = null;
      do {
        const page = await subject.store.list(cursor, 4);
        expect(page.items.length).toBeLessThanOrEqual(4);
        for (const item of page.items) {
          seen.push(`${item.key.sha256}/${item.key.generation}`);
          expect(Math.abs(item.storedAt.getTime() - Date.now())).toBeLessThan(600_000);
          expect(await subject.store.head(item.key)).toEqual({ sizeBytes: item.sizeBytes });
        }
        cursor = page.nextCursor;
      } while (cursor !== null);
      expect(seen).toEqual([...new Set(seen)].toSorted());
      expect(seen).toEqual(expect.arrayContaining(keys.map((key) => `${key.sha256}/${key.generation}`)));
      await expect(subject.store.list("../x")).rejects.toThrow("not a listing cursor");
      await expect(subject.store.list(null, 0)).rejects.toThrow("not a page size");
      await expect(subject.store.list(null, 1001)).rejects.toThrow("not a page size");
    });

    test("the listing does not name the owner's mark, and a cursor holds when its object is gone", async () => {
      await Promise.all(Array.from({ length: 4 }, async () => stored(randomBytes(10))));
      await subject.store.claimOwner("mark");
      // What is no key can't be formatted.
      const whole = (await subject.store.list(null)).items.map(({ key }) => formatBinaryKey(key));
      const { items, nextCursor } = await subject.store.list(null, 1);
      await subject.store.delete(items[0]!.key);
      const rest: string[] = [];
      for (let cursor = nextCursor; cursor !== null;) {
        const page = await subject.store.list(cursor, 3);
        rest.push(...page.items.map(({ key }) => formatBinaryKey(key)));
        cursor = page.nextCursor;
      }
      expect(rest).toEqual(whole.slice(1));
    });

    test("A4 the owner's mark is the first claimer's, and stays", async () => {
      const { store, close } = await open();
      try {
        expect(await store.readOwner()).toBeNull();
        const said = await Promise.all(
          Array.from({ length: 6 }, async (_, index) => store.claimOwner(`owner ${index}`)),
        );
        expect(new Set(said).size).toBe(1);
        expect(said[0]).toMatch(/^owner [0-5]$/);
        expect(await store.claimOwner("later")).toBe(said[0]);
        expect(await store.readOwner()).toBe(said[0]);
        expect(await store.list(null)).toEqual({ items: [], nextCursor: null });
      } finally {
        await close();
      }
    });

    test("nothing is a stray while nothing was broken off, and a stored object never is one", async () => {
      const key = await stored(randomBytes(10));
      const never = new AbortController().signal;
      expect(await subject.store.removeStrays(new Date(Date.now() + 3_600_000), never)).toBe(0);
      expect(await subject.store.head(key)).toEqual({ sizeBytes: 10 });
    });

    test("a stream that is destroyed half way holds nothing back", async () => {
      const key = await stored(randomBytes(3_000_000));
      for (let times = 0; times < 8; times += 1) {
        const stream = await subject.store.read(key);
        if (times % 2 === 0) await new Promise((resolve) => stream!.once("data", resolve));
        stream!.destroy();
      }
      expect(await hashOf(await subject.store.read(key))).toBe(key.sha256);
    });

    test("A4 the identity is complete and steady", () => {
      const identity = subject.store.identity();
      expect(subject.store.identity()).toEqual(identity);
      expect(Object.values(identity).every((part) => part.length > 0)).toBe(true);
    });
  });
}

/** The bytes, spooled. */
export async function spoolBytes(spool: Spool, bytes: Uint8Array): Promise<SpooledBody> {
  const body = spool.open();
  for (let at = 0; at < bytes.byteLength; at += 65_536) await body.write(bytes.subarray(at, at + 65_536));
  return body.finish();
}

async function hashOf(stream: Readable | null): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of stream! as AsyncIterable<Uint8Array>) hash.update(chunk);
  return hash.digest("hex");
}
