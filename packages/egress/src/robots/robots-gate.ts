import { type Failure, upstreamFailure } from "@keble-scraper/contract";
import { LRUCache } from "lru-cache";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { AdmitHop, HopWait } from "../transport/admission.ts";
import type { FetchRequest } from "../transport/fetch-request.ts";
import type { SocketMeter } from "../transport/socket-meter.ts";
import { ALLOW_ALL, isAllowed, parseRobots, type RobotsRules } from "./parse-robots.ts";

/** The final response to a robots.txt request. `body` may be cut at `ROBOTS_BYTES_MAX` + 1 bytes or later, not before. */
export type RobotsResponse = { readonly httpStatus: number; readonly body: Uint8Array };

/**
 * Fetches a robots.txt under the same policy as any target, following at most 5 redirects. A 429 and a 500 to 599 are
 * failures already, with what their Retry-After says.
 */
export type FetchRobots = (url: VettedUrl, asking: RobotsAsking) => Promise<RobotsFetched>;

/**
 * Who asks: its signal, the admission that lets the request for the file go, and what the file's sockets are counted on
 * (null: nothing is paid by the byte) and where they should come out.
 */
export type RobotsAsking = {
  readonly signal: AbortSignal;
  readonly admit: AdmitHop;
  readonly meter: SocketMeter | null;
  readonly egress: FetchRequest["egress"];
};

/** WAIT: the file's host has a queue; nothing was sent. */
export type RobotsFetched =
  | { readonly kind: "ANSWERED"; readonly response: RobotsResponse }
  | { readonly kind: "FAILED"; readonly failure: Failure }
  | { readonly kind: "WAIT"; readonly wait: HopWait };

/**
 * FAILED: the rules could not be read, and `failure` is what the attempt ends with. It never means "disallowed". WAIT: they
 * could not be asked for yet. `crawlDelayMs`: what the rules ask between two requests; null when they ask nothing.
 */
export type RobotsVerdict =
  | { readonly kind: "ALLOWED"; readonly crawlDelayMs: number | null }
  | { readonly kind: "DISALLOWED" }
  | { readonly kind: "WAIT"; readonly wait: HopWait }
  | { readonly kind: "FAILED"; readonly failure: Failure };

/**
 * - `productToken`: the name that groups are looked up by, without version.
 * - `cacheMaxEntries`: origins remembered, 10,000 when absent; their rules take at most 32 MiB together, whatever this says.
 * - `ttlMs`: how long rules are believed, at most and by default 24 hours (RFC 9309 section 2.4).
 * - `now`: monotonic milliseconds above 0, for tests.
 */
export type RobotsGateOptions = {
  readonly fetchRobots: FetchRobots;
  readonly productToken: string;
  readonly cacheMaxEntries?: number;
  readonly ttlMs?: number;
  readonly now?: () => number;
};

/** Says whether a URL may be fetched. Ask again at each new origin of a redirect chain. An aborted signal rejects. */
export type RobotsGate = { readonly check: (url: VettedUrl, asking: RobotsAsking) => Promise<RobotsVerdict> };

const DAY_MS = 86_400_000;
/** Rules of one origin take about a kilobyte. */
const ORIGINS_MAX = 10_000;
const CACHE_BYTES_MAX = 32 * 1024 * 1024;
/** About what an object with a flag and a short string takes. */
const RULE_BYTES = 100;

type Read =
  | { readonly kind: "RULES"; readonly rules: RobotsRules }
  | Exclude<RobotsFetched, { readonly kind: "ANSWERED" }>;
type Flight = {
  readonly outcome: Promise<Read>;
  readonly controller: AbortController;
  readonly owner: RobotsAsking;
  waiting: number;
  isCalledBack: boolean;
};

/**
 * A gate with a bounded memory, keyed by origin. Callers that ask about one origin at the same time share one request,
 * which goes on until the last of them has left, or, where its bytes are paid for, the one whose meter it runs on: then
 * another of them begins it again. Failures and waits are not remembered.
 */
export function createRobotsGate(options: RobotsGateOptions): RobotsGate {
  const flights = new Map<string, Flight>();
  const now = options.now ?? (() => performance.now());
  const cache = new LRUCache<string, RobotsRules>({
    max: options.cacheMaxEntries ?? ORIGINS_MAX,
    maxSize: CACHE_BYTES_MAX,
    sizeCalculation: sizeOf,
    ttl: Math.min(options.ttlMs ?? DAY_MS, DAY_MS),
    ttlResolution: 0,
    perf: { now },
  });

  const takeOff = (url: VettedUrl, owner: RobotsAsking): Flight => {
    const controller = new AbortController();
    const outcome = read(options, url, { ...owner, signal: controller.signal }).then((made) => {
      if (made.kind === "RULES") cache.set(url.origin, made.rules);
      return made;
    });
    const flight: Flight = { outcome, controller, owner, waiting: 0, isCalledBack: false };
    flights.set(url.origin, flight);
    const land = (): void => {
      if (flights.get(url.origin) === flight) flights.delete(url.origin);
    };
    outcome.then(land, land);
    return flight;
  };

  const leave = (url: VettedUrl, flight: Flight, asking: RobotsAsking): void => {
    flight.waiting -= 1;
    const isPayerGone = asking.meter !== null && flight.owner === asking;
    if (flight.waiting > 0 && !isPayerGone) return;
    // Nobody may join a flight that is being called back.
    if (flights.get(url.origin) === flight) flights.delete(url.origin);
    flight.isCalledBack = true;
    flight.controller.abort(new Error("nobody waits for this robots.txt any more"));
  };

  /** Null: the flight ended with the attempt that paid for it, which says nothing about the file. */
  const join = async (url: VettedUrl, asking: RobotsAsking): Promise<Read | null> => {
    const flight = flights.get(url.origin) ?? takeOff(url, asking);
    flight.waiting += 1;
    try {
      const made = await untilAborted(flight.outcome, asking.signal);
      const isOthersLimit = flight.owner !== asking && flight.owner.meter?.isExceeded === true;
      return made.kind === "FAILED" && isOthersLimit ? null : made;
    } catch (error) {
      if (flight.isCalledBack && !asking.signal.aborted) return null;
      throw error;
    } finally {
      leave(url, flight, asking);
    }
  };

  return {
    async check(url, asking) {
      asking.signal.throwIfAborted();
      for (;;) {
        const known = cache.get(url.origin);
        if (known !== undefined) return verdictOn(known, url);
        const made = await join(url, asking);
        if (made !== null) return made.kind === "RULES" ? verdictOn(made.rules, url) : made;
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
  asking: RobotsAsking,
): Promise<Read> {
  const fetched = await fetchRobots(robotsUrl(url), asking);
  if (fetched.kind !== "ANSWERED") return fetched;
  const { httpStatus, body } = fetched.response;
  // 600 to 999 is no status of HTTP's, which targets may answer with; here it must not read as "nothing is forbidden".
  if (httpStatus >= 500) return { kind: "FAILED", failure: upstreamFailure("HTTP_SERVER_ERROR", { httpStatus }) };
  // RFC 9309 section 2.3.1.3: a file that is not there, or not for us, forbids nothing.
  const isThere = httpStatus >= 200 && httpStatus < 300;
  return { kind: "RULES", rules: isThere ? parseRobots(body, productToken) : ALLOW_ALL };
}

function verdictOn(rules: RobotsRules, url: VettedUrl): RobotsVerdict {
  return isAllowed(rules, url.target) ? { kind: "ALLOWED", crawlDelayMs: rules.crawlDelayMs } : { kind: "DISALLOWED" };
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
