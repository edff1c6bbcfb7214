import { type Failure, failed, type Result, upstreamFailure } from "@keble-scraper/contract";
import { LRUCache } from "lru-cache";
import type { VettedUrl } from "../policy/vet-url.ts";
import { ALLOW_ALL, isAllowed, parseRobots, type RobotsRules } from "./parse-robots.ts";

/** The final response to a robots.txt request. `body` may be cut at `ROBOTS_BYTES_MAX` + 1 bytes or later, not before. */
export type RobotsResponse = { readonly httpStatus: number; readonly body: Uint8Array };

/**
 * Fetches a robots.txt under the same policy as any target, following at most 5 redirects. A 429 and a 500 to 599 are
 * failures already, with what their Retry-After says.
 */
export type FetchRobots = (url: VettedUrl, signal: AbortSignal) => Promise<Result<RobotsResponse>>;

/** FAILED: the rules could not be read, and `failure` is what the attempt ends with. It never means "disallowed". */
export type RobotsVerdict =
  | { readonly kind: "ALLOWED" }
  | { readonly kind: "DISALLOWED" }
  | { readonly kind: "FAILED"; readonly failure: Failure };

/**
 * - `productToken`: the name that groups are looked up by, without version.
 * - `cacheMaxEntries`: origins remembered; their rules take at most 32 MiB together, whatever this says.
 * - `ttlMs`: how long rules are believed, at most and by default 24 hours (RFC 9309 section 2.4).
 * - `now`: monotonic milliseconds above 0, for tests.
 */
export type RobotsGateOptions = {
  readonly fetchRobots: FetchRobots;
  readonly productToken: string;
  readonly cacheMaxEntries: number;
  readonly ttlMs?: number;
  readonly now?: () => number;
};

/** Says whether a URL may be fetched. Ask again at each new origin of a redirect chain. An aborted signal rejects. */
export type RobotsGate = { readonly check: (url: VettedUrl, signal: AbortSignal) => Promise<RobotsVerdict> };

const DAY_MS = 86_400_000;
const CACHE_BYTES_MAX = 32 * 1024 * 1024;
/** About what an object with a flag and a short string takes. */
const RULE_BYTES = 100;

type Read = Result<RobotsRules>;
type Flight = { readonly outcome: Promise<Read>; readonly controller: AbortController; waiting: number };

/**
 * A gate with a bounded memory, keyed by origin. Callers that ask about one origin at the same time share one request,
 * which goes on until the last of them has left. Failures are not remembered.
 */
export function createRobotsGate(options: RobotsGateOptions): RobotsGate {
  const flights = new Map<string, Flight>();
  const now = options.now ?? (() => performance.now());
  const cache = new LRUCache<string, RobotsRules>({
    max: options.cacheMaxEntries,
    maxSize: CACHE_BYTES_MAX,
    sizeCalculation: sizeOf,
    ttl: Math.min(options.ttlMs ?? DAY_MS, DAY_MS),
    ttlResolution: 0,
    perf: { now },
  });

  const takeOff = (url: VettedUrl): Flight => {
    const controller = new AbortController();
    const outcome = read(options, url, controller.signal).then((rules) => {
      if (rules.ok) cache.set(url.origin, rules.value);
      return rules;
    });
    const flight: Flight = { outcome, controller, waiting: 0 };
    flights.set(url.origin, flight);
    const land = (): void => {
      if (flights.get(url.origin) === flight) flights.delete(url.origin);
    };
    outcome.then(land, land);
    return flight;
  };

  return {
    async check(url, signal) {
      signal.throwIfAborted();
      const known = cache.get(url.origin);
      if (known !== undefined) return verdictOn(known, url);
      const flight = flights.get(url.origin) ?? takeOff(url);
      flight.waiting += 1;
      try {
        const rules = await untilAborted(flight.outcome, signal);
        return rules.ok ? verdictOn(rules.value, url) : { kind: "FAILED", failure: rules.failure };
      } finally {
        flight.waiting -= 1;
        if (flight.waiting === 0) {
          // Nobody may join a flight that is being called back.
          if (flights.get(url.origin) === flight) flights.delete(url.origin);
          flight.controller.abort(new Error("nobody waits for this robots.txt any more"));
        }
      }
    },
  };
}

/** The robots.txt of a URL's origin. */
export function robotsUrl(url: VettedUrl): VettedUrl {
  return { ...url, href: `${url.origin}/robots.txt`, target: "/robots.txt" };
}

async function read(
  { fetchRobots, productToken }: RobotsGateOptions,
  url: VettedUrl,
  signal: AbortSignal,
): Promise<Read> {
  const fetched = await fetchRobots(robotsUrl(url), signal);
  if (!fetched.ok) return fetched;
  const { httpStatus, body } = fetched.value;
  // 600 to 999 is no status of HTTP's, which targets may answer with; here it must not read as "nothing is forbidden".
  if (httpStatus >= 500) return failed(upstreamFailure("HTTP_SERVER_ERROR", { httpStatus }));
  // RFC 9309 section 2.3.1.3: a file that is not there, or not for us, forbids nothing.
  const isThere = httpStatus >= 200 && httpStatus < 300;
  return { ok: true, value: isThere ? parseRobots(body, productToken) : ALLOW_ALL };
}

function verdictOn(rules: RobotsRules, url: VettedUrl): RobotsVerdict {
  return { kind: isAllowed(rules, url.target) ? "ALLOWED" : "DISALLOWED" };
}

function sizeOf({ rules }: RobotsRules): number {
  return rules.reduce((bytes, { pattern }) => bytes + pattern.length + RULE_BYTES, RULE_BYTES);
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
