import { type AdmissionKey, EARLY_MS, type Limit } from "./admission-key.ts";
import { AWAY, redisScript, type RedisScripts } from "./redis-scripts.ts";

/** A request that wants slots. `member` is unique to it; `token` is its job's lease, `jobId` its job. */
export type SlotHolder = { readonly member: string; readonly token: string; readonly jobId: string };

/** What a request has to pass last. `slotsMax`: how many at once; `paceMs`: the time between two. Null: no limit. */
export type SlotLimit = {
  readonly key: AdmissionKey;
  readonly slotsMax: number | null;
  readonly paceMs: number | null;
};

/** A limit that has a pace. */
export type PacedKey = { readonly key: AdmissionKey; readonly paceMs: number };

/** Why a request may not go: this limit is full (`inMs` null), or it is too early for its pace, by `inMs`. */
export type SlotRefusal = { readonly limit: SlotLimit; readonly inMs: number | null };

/** How many requests are under way to a host or by a route, over all workers. */
export type Slots = {
  /** Takes a slot and a turn of the pace of every limit (null), or none: then it says which limit refused. */
  take(holder: SlotHolder, limits: readonly SlotLimit[]): Promise<SlotRefusal | null>;
  /** Gives all slots of the holder back; never waits. One that Redis does not hear of expires with its lease. */
  give(holder: SlotHolder): void;
  /** Announces the slots of these leases again: they expire one lease from now. Never waits. */
  renew(tokens: readonly string[]): void;
  /** Calls `nudge` once when a holder of this process gives a slot of one of these limits back. Returns how to take it off. */
  onRoom(limits: readonly SlotLimit[], nudge: () => void): () => void;
  /** Slots that this process holds. */
  readonly held: number;
};

/**
 * KEYS: the slots of each limit, then the pace of each: from when on its next request is not early, in microseconds. ARGV:
 * member, lease, how early a request may be (microseconds), then of each limit its slots (-1: any number) and its pace
 * (microseconds; 0: none). Who asks again has its slot already, and is held to the pace like everybody. Of several limits
 * it is too early for, the one that takes longest is named.
 */
const TAKE = redisScript(`
local t = redis.call("TIME")
local micros = t[1] * 1000000 + t[2]
local now = math.floor(micros / 1000)
local early = tonumber(ARGV[3])
local count = #KEYS / 2
local gates, worst, longest = {}, 0, 0
for i = 1, count do
  local key, slots = KEYS[i], tonumber(ARGV[2 + 2 * i])
  if slots >= 0 then
    redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
    if not redis.call("ZSCORE", key, ARGV[1]) and redis.call("ZCARD", key) >= slots then return { i, -1 } end
  end
  if tonumber(ARGV[3 + 2 * i]) > 0 then
    gates[i] = math.max(micros, tonumber(redis.call("GET", KEYS[count + i]) or 0))
    local left = gates[i] - micros - early
    if left > longest then worst, longest = i, left end
  end
end
if worst > 0 then return { worst, longest } end
for i = 1, count do
  if tonumber(ARGV[2 + 2 * i]) >= 0 then
    redis.call("ZADD", KEYS[i], now + ARGV[2], ARGV[1])
    redis.call("PEXPIRE", KEYS[i], ARGV[2])
  end
  if gates[i] then
    local gate = gates[i] + ARGV[3 + 2 * i]
    redis.call("SET", KEYS[count + i], string.format("%.0f", gate), "PX", string.format("%.0f", math.ceil((gate - micros) / 1000)))
  end
end
return { 0, 0 }
`);

const GIVE = redisScript(`
for _, key in ipairs(KEYS) do
  redis.call("ZREM", key, ARGV[1])
end
return 1
`);

const ANNOUNCE = redisScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for i, key in ipairs(KEYS) do
  redis.call("ZADD", key, now + ARGV[1], ARGV[1 + i])
  redis.call("PEXPIRE", key, ARGV[1])
end
return 1
`);

/** Slots announced in one script, so that none holds Redis up. */
const ANNOUNCED_MAX = 200;

/**
 * Makes the slots of one process. `countRunningBefore` counts, and `takePaces` spaces, for as long as Redis is away; what they
 * throw goes through.
 */
export function createSlots(parts: {
  readonly redis: RedisScripts;
  readonly prefix: string;
  readonly leaseMs: number;
  countRunningBefore(key: AdmissionKey, holder: SlotHolder): Promise<number>;
  takePaces(limits: readonly PacedKey[]): Promise<{ readonly key: AdmissionKey; readonly inMs: number } | null>;
}): Slots {
  const { redis, leaseMs } = parts;
  const held = new Map<string, { readonly token: string; readonly keys: readonly AdmissionKey[]; untilMs: number }>();
  const nudges = new Map<AdmissionKey, Set<() => void>>();

  const keyOf = (key: AdmissionKey) => `${parts.prefix}:admission:slots:${key}`;
  const paceKeyOf = (key: AdmissionKey) => `${parts.prefix}:admission:pace:${key}`;

  async function findFullInSql(holder: SlotHolder, limits: readonly SlotLimit[]): Promise<SlotRefusal | null> {
    for (const limit of limits) {
      const { key, slotsMax } = limit;
      if (slotsMax !== null && (await parts.countRunningBefore(key, holder)) >= slotsMax) return { limit, inMs: null };
    }
    const paced = limits.flatMap(({ key, paceMs }) => (paceMs === null ? [] : [{ key, paceMs }]));
    const refusal = paced.length === 0 ? null : await parts.takePaces(paced);
    const limit = limits.find(({ key }) => key === refusal?.key);
    return refusal === null || limit === undefined ? null : { limit, inMs: refusal.inMs };
  }

  function announce(entries: readonly (readonly [AdmissionKey, string])[]): void {
    for (let first = 0; first < entries.length; first += ANNOUNCED_MAX) {
      const some = entries.slice(first, first + ANNOUNCED_MAX);
      const keys = some.map(([key]) => keyOf(key));
      void redis.run(ANNOUNCE, keys, [leaseMs, ...some.map(([, member]) => member)]);
    }
  }

  function announceAll(isMeant: (token: string) => boolean): void {
    const nowMs = performance.now();
    const entries: (readonly [AdmissionKey, string])[] = [];
    for (const [member, slot] of held) {
      if (isMeant(slot.token)) {
        slot.untilMs = nowMs + leaseMs;
        for (const key of slot.keys) entries.push([key, member]);
      } else if (slot.untilMs < nowMs) {
        // Its lease is gone and nobody gave it back: in Redis it has expired.
        held.delete(member);
      }
    }
    announce(entries);
  }

  // A Redis that comes back may have forgotten everything.
  redis.onUp(() => announceAll(() => true));

  return {
    get held() {
      return held.size;
    },
    async take(holder, limits) {
      const figures = limits.flatMap(({ slotsMax, paceMs }) => [slotsMax ?? -1, Math.ceil((paceMs ?? 0) * 1_000)]);
      const names = [...limits.map(({ key }) => keyOf(key)), ...limits.map(({ key }) => paceKeyOf(key))];
      const reply = await redis.run(TAKE, names, [holder.member, leaseMs, EARLY_MS * 1_000, ...figures]);
      const refusal = reply === AWAY ? await findFullInSql(holder, limits) : toRefusal(reply, limits);
      const keys = limits.flatMap(({ key, slotsMax }) => (slotsMax === null ? [] : [key]));
      if (refusal === null && keys.length > 0) {
        held.set(holder.member, { token: holder.token, keys, untilMs: performance.now() + leaseMs });
      }
      return refusal;
    },
    give({ member }) {
      const entry = held.get(member);
      if (entry === undefined) return;
      held.delete(member);
      void redis.run(GIVE, entry.keys.map(keyOf), [member]).then(() => {
        for (const key of entry.keys) nudgeOne(nudges.get(key));
      });
    },
    renew(tokens) {
      if (held.size === 0) return;
      const renewed = new Set(tokens);
      announceAll((token) => renewed.has(token));
    },
    onRoom(limits, nudge) {
      const once = () => {
        off();
        nudge();
      };
      const off = () => {
        for (const { key } of limits) {
          const waiting = nudges.get(key);
          waiting?.delete(once);
          if (waiting?.size === 0) nudges.delete(key);
        }
      };
      for (const { key } of limits) {
        const waiting = nudges.get(key);
        if (waiting === undefined) nudges.set(key, new Set([once]));
        else waiting.add(once);
      }
      return off;
    },
  };
}

function toRefusal(reply: unknown, limits: readonly SlotLimit[]): SlotRefusal | null {
  const [place, micros] = Array.isArray(reply) ? (reply as unknown[]).map(Number) : [];
  const limit = limits[(place ?? 0) - 1];
  return limit === undefined ? null : { limit, inMs: micros === undefined || micros < 0 ? null : micros / 1_000 };
}

/** The limits of a hop, as its last step looks at them. */
export function slotLimitsOf(limits: readonly (Limit | null)[]): SlotLimit[] {
  return limits.flatMap((limit) =>
    limit === null ? [] : [{ key: limit.key, slotsMax: limit.slotsMax, paceMs: limit.paceMs }],
  );
}

function nudgeOne(waiting: ReadonlySet<() => void> | undefined): void {
  for (const nudge of waiting ?? []) {
    nudge();
    return;
  }
}
