import { LRUCache } from "lru-cache";
import type { Resolver, ResolveOutcome } from "./resolver.ts";

/** No answer is believed for longer, whatever its TTL: a name that was pointed elsewhere is followed within a minute. */
export const DNS_TTL_MS_MAX = 60_000;

/** Names remembered. With 20 addresses each, about 5 MiB. */
const NAMES_MAX = 4_096;

/** Answers with more addresses are not remembered, so that the memory stays what it says. */
const ADDRESSES_MAX = 64;

/** `now`: monotonic milliseconds above 0, for tests. */
export type CachingResolverOptions = { readonly namesMax?: number; readonly now?: () => number };

type Flight = { readonly outcome: Promise<ResolveOutcome>; readonly controller: AbortController; waiting: number };

/**
 * A resolver that remembers the answers of another one, each for as long as its TTL says and a minute at most, counted from
 * when it was asked for; failures and answers without a TTL are never remembered. Callers that ask for one name at the same
 * time share one question, which is called back when the last of them has left. What it gives was not vetted: whoever
 * connects vets it, each time.
 */
export function createCachingResolver(inner: Resolver, options: CachingResolverOptions = {}): Resolver {
  const now = options.now ?? (() => performance.now());
  const flights = new Map<string, Flight>();
  const cache = new LRUCache<string, ResolveOutcome>({
    max: options.namesMax ?? NAMES_MAX,
    ttl: DNS_TTL_MS_MAX,
    ttlResolution: 0,
    perf: { now },
  });

  const ask = (name: string): Flight => {
    const controller = new AbortController();
    const askedAt = now();
    const outcome = inner.resolve(name, { signal: controller.signal }).then((made) => {
      if (made.ok && made.addresses.length <= ADDRESSES_MAX) {
        const leftMs = Math.min(made.ttlMs ?? 0, DNS_TTL_MS_MAX) - (now() - askedAt);
        if (leftMs > 0) cache.set(name, made, { ttl: leftMs });
      }
      return made;
    });
    const flight: Flight = { outcome, controller, waiting: 0 };
    flights.set(name, flight);
    const land = (): void => {
      if (flights.get(name) === flight) flights.delete(name);
    };
    outcome.then(land, land);
    return flight;
  };

  const share = async (name: string, signal: AbortSignal): Promise<ResolveOutcome> => {
    const flight = flights.get(name) ?? ask(name);
    flight.waiting += 1;
    try {
      return await untilAborted(flight.outcome, signal);
    } finally {
      flight.waiting -= 1;
      if (flight.waiting === 0) {
        if (flights.get(name) === flight) flights.delete(name);
        flight.controller.abort(new Error("nobody waits for this name any more"));
      }
    }
  };

  return {
    recall: (name) => cache.get(name) ?? null,
    async resolve(name, { signal }) {
      signal.throwIfAborted();
      return cache.get(name) ?? share(name, signal);
    },
  };
}

function untilAborted<T>(outcome: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      reject(signal.reason as Error);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    outcome.then(resolve, reject).finally(() => {
      signal.removeEventListener("abort", onAbort);
    });
  });
}
