import { expect, test } from "vitest";
import { type CacheParts, type CachingJob, consultCache } from "./consult-cache.ts";

const job = {
  id: "j",
  token: "t",
  callerId: "acme",
  cacheKey: "k",
  freshnessMs: 1_000,
  maxBodyBytes: 10,
  contentTypes: null,
  egress: null,
  target: { url: "https://example.com/", method: "GET", headers: {} },
} as unknown as CachingJob;

const fresh = {
  key: "k",
  callerId: "acme",
  validatedAtMs: 1,
  ageMs: 10,
  sizeBytes: 1,
  isAnswer: true,
  declaredType: null,
  etag: null,
  lastModified: null,
};

function partsOf(more: Partial<CacheParts>): CacheParts {
  return {
    isShared: false,
    look: () => Promise.resolve({ answers: [], flights: [] }),
    take: () => Promise.reject(new Error("nothing to take")),
    fly: () => Promise.resolve({ kind: "TAKEN" }),
    isOutage: () => true,
    ...more,
  };
}

const control = (isTrusted: () => boolean) => ({ signal: new AbortController().signal, isTrusted });

test("while the database is away a job asks again, and for no longer than its lease is trusted", async () => {
  let asked = 0;
  const look = () => {
    asked += 1;
    return asked < 2 ? Promise.reject(new Error("away")) : Promise.resolve({ answers: [], flights: [] });
  };
  expect(
    await consultCache(
      job,
      control(() => true),
      partsOf({ look }),
    ),
  ).toMatchObject({ kind: "FETCH", stale: null });
  asked = -10;
  let looks = 0;
  const trusted = () => (looks += 1) < 2;
  expect(await consultCache(job, control(trusted), partsOf({ look }))).toEqual({ kind: "STALE" });
});

test("a job whose answers go as soon as it sees them waits like others, rather than look for ever", async () => {
  let takes = 0;
  const advice = await consultCache(
    job,
    control(() => true),
    partsOf({
      look: () => Promise.resolve({ answers: [fresh], flights: [] }),
      take: () => {
        takes += 1;
        return Promise.resolve({ token: "t", verdict: "GONE", ended: null, ageSeconds: null });
      },
    }),
  );
  expect(advice).toEqual({ kind: "WAIT", ms: 1_000 });
  expect(takes).toBe(4);
});

test("A7 a job waits no longer than the lease of the one that fetches", async () => {
  const flights = [{ key: "k", callerId: "acme", leaseToken: "other", leaseMs: 300 }];
  const look = () => Promise.resolve({ answers: [], flights });
  expect(
    await consultCache(
      job,
      control(() => true),
      partsOf({ look }),
    ),
  ).toEqual({ kind: "WAIT", ms: 300 });
});

test("A7 where callers share, a job waits for any caller's fetch, unless the answers are each caller's own", async () => {
  const flights = [{ key: "k", callerId: "", leaseToken: "other", leaseMs: 300 }];
  const places: unknown[] = [];
  const fly: CacheParts["fly"] = ({ place }) => {
    places.push(place.callerId);
    return Promise.resolve({ kind: "TAKEN" });
  };
  const ask = (answers: (typeof fresh)[], more: Partial<CacheParts> = {}) =>
    consultCache(
      job,
      control(() => true),
      partsOf({ look: () => Promise.resolve({ answers, flights }), fly, isShared: true, ...more }),
    );
  expect(await ask([])).toEqual({ kind: "WAIT", ms: 300 });
  const mark = { ...fresh, callerId: "", isAnswer: false };
  expect(await ask([mark])).toMatchObject({ kind: "FETCH", terms: { mayShare: true } });
  expect(await ask([], { isShared: false })).toMatchObject({ kind: "FETCH", terms: { mayShare: false } });
  expect(places).toEqual(["acme", "acme"]);
});
