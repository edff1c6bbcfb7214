import { type CacheFlight, type CachedAnswer, type CachePlace, SHARED_CACHE } from "@keble-scraper/db";
import type { CacheHit, CacheVerdict, FlightRequest, FlightVerdict } from "@keble-scraper/db/commands/fetching";
import { matchesContentTypes } from "@keble-scraper/egress";
import type { RunControl } from "@keble-scraper/service";
import type { ClaimedJob } from "../claimed-job.ts";
import { isAnybodysRequest } from "./answer-scope.ts";
import type { CacheTerms } from "./cache-report.ts";

/** A job that may take an answer from the cache. */
export type CachingJob = ClaimedJob & { readonly cacheKey: string };

/**
 * TAKEN: the job has ended with a stored answer. WAIT: another job fetches it, look again in `ms` at the latest. FETCH: it is this job's
 * to fetch; `stale` is an answer that is too old for it. STALE: the lease is no longer ours, or may not be.
 */
export type CacheAdvice =
  | { readonly kind: "TAKEN"; readonly verdict: CacheVerdict }
  | { readonly kind: "WAIT"; readonly ms: number }
  | { readonly kind: "FETCH"; readonly terms: CacheTerms; readonly stale: CachedAnswer | null }
  | { readonly kind: "STALE" };

/** What consulting the cache may use. All of them share statements among jobs that ask at about the same time. */
export type CacheParts = {
  /** Whether jobs of all callers take one another's answers here. */
  readonly isShared: boolean;
  look(
    places: readonly CachePlace[],
  ): Promise<{ readonly answers: readonly CachedAnswer[]; readonly flights: readonly CacheFlight[] }>;
  take(hit: CacheHit, isTrusted: () => boolean): Promise<CacheVerdict>;
  fly(request: FlightRequest): Promise<FlightVerdict>;
  isOutage(error: unknown): boolean;
};

/** How soon a job looks again whose answers came and went. */
const LOOK_AGAIN_MS = 1_000;
/** Each further look means that an answer came or went meanwhile; past so many the job waits like others. */
const LOOKS_MAX = 4;
/** Between two tries while the database can't be reached: nothing was sent, so waiting harms nothing. */
const RETRY_MS = 250;

/** Whether an answer is of a size and a declared type that the job takes, by the rules that its own fetch would apply. */
function isFit({ isAnswer, sizeBytes, declaredType }: CachedAnswer, job: CachingJob): boolean {
  return isAnswer && sizeBytes <= job.maxBodyBytes && matchesContentTypes(declaredType, job.contentTypes ?? []);
}

/**
 * Takes a stored answer, waits for the one that is on its way, or takes the flight. While the database is away it is asked
 * again for as long as the lease is trusted.
 */
export async function consultCache(job: CachingJob, control: RunControl, parts: CacheParts): Promise<CacheAdvice> {
  while (control.isTrusted() && !control.signal.aborted) {
    try {
      return await consult(job, control, parts);
    } catch (error) {
      if (!parts.isOutage(error)) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  return { kind: "STALE" };
}

async function consult(job: CachingJob, control: RunControl, parts: CacheParts): Promise<CacheAdvice> {
  const key = job.cacheKey;
  const mayShare = parts.isShared && isAnybodysRequest(job);
  const places = [job.callerId, ...(mayShare ? [SHARED_CACHE] : [])].map((callerId) => ({ key, callerId }));
  for (let look = 0; look < LOOKS_MAX; look += 1) {
    const { answers, flights } = await parts.look(places);
    const fit = answers.filter((answer) => isFit(answer, job)).toSorted((one, other) => one.ageMs - other.ageMs)[0];
    if (fit !== undefined && fit.ageMs < job.freshnessMs) {
      const hit = { id: job.id, token: job.token, answer: fit, freshnessMs: job.freshnessMs };
      const verdict = await parts.take(hit, control.isTrusted);
      if (verdict.verdict === "SETTLED") return { kind: "TAKEN", verdict };
      if (verdict.verdict === "STALE") return { kind: "STALE" };
      continue;
    }
    // A mark says that answers of this key are each caller's own: nobody waits for another caller's.
    const isMarked = answers.some((answer) => answer.callerId === SHARED_CACHE && !answer.isAnswer);
    const place = { key, callerId: mayShare && !isMarked ? SHARED_CACHE : job.callerId };
    const flight = flights.find(({ callerId, leaseToken }) => callerId === place.callerId && leaseToken !== job.token);
    if (flight !== undefined) return waitFor(flight.leaseMs);
    const seenAtMs = Math.max(0, ...answers.map(({ validatedAtMs }) => validatedAtMs));
    const verdict = await parts.fly({ id: job.id, token: job.token, place, seenAtMs });
    if (verdict.kind === "TAKEN") return { kind: "FETCH", terms: { key, mayShare }, stale: fit ?? null };
    if (verdict.kind === "HELD") return waitFor(verdict.leaseMs);
    if (verdict.kind === "STALE") return { kind: "STALE" };
  }
  return waitFor(LOOK_AGAIN_MS);
}

function waitFor(leaseMs: number): CacheAdvice {
  return { kind: "WAIT", ms: Math.max(0, leaseMs) };
}
