import { describe, expect, test } from "vitest";
import { createCachingResolver, DNS_TTL_MS_MAX } from "./caching-resolver.ts";
import type { ResolveOutcome, Resolver } from "./resolver.ts";

const signal = new AbortController().signal;
const PUBLIC = "93.184.216.34";

/** A cache on a clock of its own over an inner resolver that answers with what it is told. */
function openCache(answer: ResolveOutcome | (() => ResolveOutcome), namesMax?: number) {
  const asked: string[] = [];
  let nowMs = 1_000;
  let takesMs = 0;
  const inner: Resolver = {
    resolve(name) {
      asked.push(name);
      nowMs += takesMs;
      return Promise.resolve(typeof answer === "function" ? answer() : answer);
    },
  };
  const cache = createCachingResolver(inner, { now: () => nowMs, ...(namesMax === undefined ? {} : { namesMax }) });
  return {
    asked,
    resolve: (name = "a.example.com") => cache.resolve(name, { signal }),
    pass: (ms: number) => void (nowMs += ms),
    slow: (ms: number) => void (takesMs = ms),
  };
}

/** An inner resolver whose questions wait to be answered. */
function openHeld() {
  const questions: { name: string; signal: AbortSignal; answer: (outcome: ResolveOutcome) => void }[] = [];
  const inner: Resolver = {
    resolve: (name, asked) =>
      new Promise((resolve, reject) => {
        questions.push({ name, signal: asked.signal, answer: resolve });
        asked.signal.addEventListener("abort", () => reject(asked.signal.reason as Error));
      }),
  };
  return { questions, cache: createCachingResolver(inner) };
}

function good(ttlMs?: number): ResolveOutcome {
  return { ok: true, addresses: [PUBLIC], ...(ttlMs === undefined ? {} : { ttlMs }) };
}

describe("remembering", () => {
  test("W6 an answer serves within its TTL and not a millisecond longer", async () => {
    const { asked, resolve, pass } = openCache(good(5_000));
    await resolve();
    pass(4_999);
    expect(await resolve()).toEqual(good(5_000));
    expect(asked).toHaveLength(1);
    pass(2);
    await resolve();
    expect(asked).toHaveLength(2);
  });

  test("W6 the time that its answer took counts against it", async () => {
    const { asked, resolve, pass, slow } = openCache(good(1_000));
    slow(900);
    await resolve();
    pass(101);
    await resolve();
    expect(asked).toHaveLength(2);
    slow(1_000);
    pass(2_000);
    await resolve();
    await resolve();
    expect(asked).toHaveLength(4);
  });

  test("W6 serving it again does not make it younger", async () => {
    const { asked, resolve, pass } = openCache(good(3_000));
    for (let second = 0; second <= 3; second += 1) {
      await resolve();
      pass(1_001);
    }
    expect(asked).toHaveLength(2);
  });

  test("W6 no answer is older than a minute, whatever its TTL", async () => {
    const { asked, resolve, pass } = openCache(good(86_400_000));
    await resolve();
    pass(DNS_TTL_MS_MAX - 1);
    await resolve();
    expect(asked).toHaveLength(1);
    pass(2);
    await resolve();
    expect(asked).toHaveLength(2);
  });

  test.each<[string, ResolveOutcome]>([
    ["without a TTL", good()],
    ["with a TTL of 0", good(0)],
    ["that is a failure", { ok: false, kind: "dns_not_found", nativeCode: "ENOTFOUND" }],
    [
      "of very many addresses",
      { ok: true, addresses: Array.from({ length: 65 }, (_, index) => `93.184.216.${index}`), ttlMs: 9_000 },
    ],
  ])("W6 an answer %s is not remembered", async (_what, outcome) => {
    const { asked, resolve } = openCache(outcome);
    expect(await resolve()).toEqual(outcome);
    expect(await resolve()).toEqual(outcome);
    expect(asked).toHaveLength(2);
  });

  test("each name has its own answer, and the number of names is bounded", async () => {
    const { asked, resolve } = openCache(good(9_000), 2);
    for (const name of ["a", "b", "c", "b", "a"]) await resolve(`${name}.example.com`);
    expect(asked.map((name) => name[0])).toEqual(["a", "b", "c", "a"]);
  });
});

describe("one question per name", () => {
  test("callers at the same time share it, other names have their own", async () => {
    const { questions, cache } = openHeld();
    const both = Promise.all([cache.resolve("a", { signal }), cache.resolve("a", { signal })]);
    const other = cache.resolve("b", { signal });
    expect(questions.map(({ name }) => name)).toEqual(["a", "b"]);
    for (const { answer } of questions) answer(good());
    expect(await both).toEqual([good(), good()]);
    await other;
    const again = cache.resolve("a", { signal });
    expect(questions).toHaveLength(3);
    questions[2]!.answer(good());
    await again;
  });

  test("one caller's abort ends its own wait only; the last one's calls the question back", async () => {
    const { questions, cache } = openHeld();
    const [first, second] = [new AbortController(), new AbortController()];
    const early = cache.resolve("a", { signal: first.signal });
    const late = cache.resolve("a", { signal: second.signal });
    first.abort(new Error("first"));
    await expect(early).rejects.toThrow("first");
    expect(questions[0]!.signal.aborted).toBe(false);
    second.abort(new Error("second"));
    await expect(late).rejects.toThrow("second");
    expect(questions[0]!.signal.aborted).toBe(true);
    const again = cache.resolve("a", { signal });
    expect(questions).toHaveLength(2);
    questions[1]!.answer(good());
    expect(await again).toEqual(good());
  });
});
