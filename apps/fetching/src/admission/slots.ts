import type { AdmissionKey, Limit } from "./admission-key.ts";
import { AWAY, redisScript, type RedisScripts } from "./redis-scripts.ts";

/** A request that wants slots. `member` is unique to it; `token` is its job's lease, `jobId` its job. */
export type SlotHolder = { readonly member: string; readonly token: string; readonly jobId: string };

/** A limit that has slots. `paceMs`: the least time between two that are taken; null: none. */
export type SlotLimit = { readonly key: AdmissionKey; readonly slotsMax: number; readonly paceMs: number | null };

/** Why there was no slot: this limit is full, or its pace allows none for `inMs`; null: nobody knows for how long. */
export type SlotRefusal = { readonly limit: SlotLimit; readonly inMs: number | null };

/** How many requests are under way to a host or by a route, over all workers. */
export type Slots = {
  /** Takes a slot of every limit (null), or none: then it says which limit refused. While Redis is away there is no pace. */
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

/** KEYS: the slots of each limit, then the pace of each. ARGV: member, lease, then of each limit its slots and its pace. */
const TAKE = redisScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local count = #KEYS / 2
for i = 1, count do
  local key = KEYS[i]
  redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
  if not redis.call("ZSCORE", key, ARGV[1]) then
    if redis.call("ZCARD", key) >= tonumber(ARGV[1 + 2 * i]) then return { i, -1 } end
    local left = 0
    if tonumber(ARGV[2 + 2 * i]) > 0 then left = redis.call("PTTL", KEYS[count + i]) end
    if left > 0 then return { i, left } end
  end
end
for i = 1, count do
  redis.call("ZADD", KEYS[i], now + ARGV[2], ARGV[1])
  redis.call("PEXPIRE", KEYS[i], ARGV[2])
  if tonumber(ARGV[2 + 2 * i]) > 0 then redis.call("SET", KEYS[count + i], 1, "PX", ARGV[2 + 2 * i]) end
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

/** Makes the slots of one process. `countRunningBefore` counts for as long as Redis is away; what it throws goes through. */
export function createSlots(parts: {
  readonly redis: RedisScripts;
  readonly prefix: string;
  readonly leaseMs: number;
  countRunningBefore(key: AdmissionKey, holder: SlotHolder): Promise<number>;
}): Slots {
  const { redis, leaseMs } = parts;
  const held = new Map<string, { readonly token: string; readonly keys: readonly AdmissionKey[]; untilMs: number }>();
  const nudges = new Map<AdmissionKey, Set<() => void>>();

  const keyOf = (key: AdmissionKey) => `${parts.prefix}:admission:slots:${key}`;
  const paceKeyOf = (key: AdmissionKey) => `${parts.prefix}:admission:pace:${key}`;

  async function findFullInSql(holder: SlotHolder, limits: readonly SlotLimit[]): Promise<SlotRefusal | null> {
    const running = await Promise.all(limits.map(({ key }) => parts.countRunningBefore(key, holder)));
    const limit = limits.find(({ slotsMax }, index) => (running[index] ?? 0) >= slotsMax);
    return limit === undefined ? null : { limit, inMs: null };
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
      const keys = limits.map(({ key }) => key);
      const figures = limits.flatMap(({ slotsMax, paceMs }) => [slotsMax, Math.floor(paceMs ?? 0)]);
      const names = [...keys.map(keyOf), ...keys.map(paceKeyOf)];
      const reply = await redis.run(TAKE, names, [holder.member, leaseMs, ...figures]);
      const refusal = reply === AWAY ? await findFullInSql(holder, limits) : toRefusal(reply, limits);
      if (refusal === null)
        held.set(holder.member, { token: holder.token, keys, untilMs: performance.now() + leaseMs });
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
  const [place, inMs] = Array.isArray(reply) ? (reply as unknown[]).map(Number) : [];
  const limit = limits[(place ?? 0) - 1];
  return limit === undefined ? null : { limit, inMs: inMs === undefined || inMs < 0 ? null : inMs };
}

/** The limits of a hop that have slots. */
export function slotLimitsOf(limits: readonly (Limit | null)[]): SlotLimit[] {
  return limits.flatMap((limit) =>
    limit?.slotsMax == null ? [] : [{ key: limit.key, slotsMax: limit.slotsMax, paceMs: limit.paceMs }],
  );
}

function nudgeOne(waiting: ReadonlySet<() => void> | undefined): void {
  for (const nudge of waiting ?? []) {
    nudge();
    return;
  }
}
