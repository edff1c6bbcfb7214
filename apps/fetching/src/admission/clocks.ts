import type { Clock } from "@keble-scraper/service";
import { remember } from "../remember.ts";
import type { AdmissionKey } from "./admission-key.ts";
import { AWAY, redisScript, type RedisScripts } from "./redis-scripts.ts";

/** One step of a clock. Times are epoch milliseconds of whoever keeps the clock. */
export type ClockStep = {
  readonly key: AdmissionKey;
  readonly intervalMs: number;
  /** Past this wait nothing is booked, and the clock stays where it is. 0: book only what may go now. */
  readonly patienceMs: number;
  /** The job's own booked time; null: it has none. It is void `voidMs` after it. */
  readonly bookedAtMs: number | null;
  readonly voidMs: number;
  /** How far ahead of now this process last saw the clock; 0: it has not, or it has passed. */
  readonly seenAheadMs: number;
  /** What is added to `seenAheadMs` for a clock that was lost: others may have booked since. */
  readonly slackMs: number;
};

/** When the request may be sent. Not booked: it was too far away, and `atMs` is where the clock stands. */
export type Turn = { readonly nowMs: number; readonly atMs: number; readonly isBooked: boolean };

/** The clocks of hosts and routes: in Redis, and in Postgres while Redis is away. */
export type Clocks = {
  take(step: Pick<ClockStep, "key" | "intervalMs" | "patienceMs" | "bookedAtMs">): Promise<Turn>;
  /** How far ahead of now this process last saw a clock: it is no nearer. 0: not seen, or passed. */
  seenAheadMs(key: AdmissionKey): number;
};

/**
 * A clock is the earliest time of the next request. It is kept a while after it has passed, so one that is missing while
 * the caller has seen it ahead was lost, and so was one that is far behind (250 ms: more than an answer is late); it goes
 * on behind what the caller has seen.
 */
const TAKE = redisScript(`
local t = redis.call("TIME")
local now = t[1] * 1000000 + t[2]
local interval, patience, booked = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local void, seen, slack = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if booked > 0 and now <= booked + void and booked <= now + void then
  return { now, booked, 1 }
end
local stored = tonumber(redis.call("GET", KEYS[1]) or "")
local at = now
if stored and stored > now then at = stored end
local isLost = seen > 0 and (not stored or now + seen > at + 250000)
if isLost then at = now + seen + slack end
local isBooked = at <= now + patience
if isBooked or isLost then
  local next = at
  if isBooked then next = at + interval end
  redis.call("SET", KEYS[1], string.format("%.0f", next), "PX", string.format("%.0f", math.ceil((next - now) / 1000) + 10000))
end
return { now, at, isBooked and 1 or 0 }
`);

type Home = "REDIS" | "POSTGRES";

/** What other processes may have booked unseen where nobody waited. */
const SLACK_MS_MIN = 250;
/** Clocks remembered per process. */
const SEEN_MAX = 10_000;

/** Makes the clocks of one process. `takeInSql` is the same step in Postgres; what it throws goes through. */
export function createClocks(parts: {
  readonly redis: RedisScripts;
  readonly prefix: string;
  takeInSql(step: ClockStep): Promise<Turn>;
  readonly voidMs: number;
  readonly clock: Clock;
}): Clocks {
  /** Until when (monotonic) each clock was seen to be booked, and by whom. Survives a flush, and the way to Postgres and back. */
  const seen = new Map<AdmissionKey, { readonly untilMs: number; readonly home: Home }>();

  function see(key: AdmissionKey, untilMs: number, home: Home): void {
    remember(seen, key, { untilMs: Math.max(seen.get(key)?.untilMs ?? 0, untilMs), home }, SEEN_MAX);
  }

  function seenAheadMs(key: AdmissionKey): number {
    return Math.max(0, (seen.get(key)?.untilMs ?? 0) - parts.clock.monotonicMs());
  }

  /** Where there was a queue, others may have booked as far ahead as anybody may, which is `voidMs`. */
  function slackMsOf(aheadMs: number, intervalMs: number): number {
    const leastMs = Math.max(intervalMs, SLACK_MS_MIN);
    return aheadMs <= intervalMs ? leastMs : Math.max(leastMs, parts.voidMs - aheadMs);
  }

  /** A clock that Postgres answered for last is not lost there. */
  async function takeInSql(step: ClockStep): Promise<Turn> {
    const isKnown = seen.get(step.key)?.home === "POSTGRES";
    return parts.takeInSql(isKnown ? { ...step, seenAheadMs: 0 } : step);
  }

  async function takeInRedis(step: ClockStep): Promise<Turn | null> {
    const figures = [
      step.intervalMs,
      step.patienceMs,
      step.bookedAtMs ?? 0,
      step.voidMs,
      step.seenAheadMs,
      step.slackMs,
    ];
    const micros = figures.map((ms) => Math.round(ms * 1_000));
    const reply = await parts.redis.run(TAKE, [`${parts.prefix}:admission:clock:${step.key}`], micros);
    return reply === AWAY ? null : toTurn(reply);
  }

  return {
    seenAheadMs,
    async take(asked) {
      const sentAtMs = parts.clock.monotonicMs();
      const aheadMs = seenAheadMs(asked.key);
      const slackMs = slackMsOf(aheadMs, asked.intervalMs);
      const step: ClockStep = { ...asked, voidMs: parts.voidMs, seenAheadMs: aheadMs, slackMs };
      const inRedis = await takeInRedis(step);
      const turn = inRedis ?? (await takeInSql(step));
      // A booking that was made before says nothing about where the clock stands.
      if (turn.atMs !== asked.bookedAtMs) {
        const nextMs = turn.isBooked ? turn.atMs + asked.intervalMs : turn.atMs;
        see(asked.key, sentAtMs + nextMs - turn.nowMs, inRedis === null ? "POSTGRES" : "REDIS");
      }
      return turn;
    },
  };
}

function toTurn(reply: unknown): Turn | null {
  if (!Array.isArray(reply)) return null;
  const [now, at, booked] = reply as unknown[];
  if (typeof now !== "number" || typeof at !== "number") return null;
  return { nowMs: now / 1_000, atMs: at / 1_000, isBooked: booked === 1 };
}
