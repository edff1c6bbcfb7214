import type { AdmissionKey, Limit } from "./admission-key.ts";
import { AWAY, redisScript, type RedisScripts } from "./redis-scripts.ts";

/** A request that wants slots. `member` is unique to it; `token` is its job's lease, `jobId` its job. */
export type SlotHolder = { readonly member: string; readonly token: string; readonly jobId: string };

/** A limit that has slots. */
export type SlotLimit = { readonly key: AdmissionKey; readonly slotsMax: number };

/** How many requests are under way to a host or by a route, over all workers. */
export type Slots = {
  /** Takes a slot of every limit (null), or none: then it answers the first limit that is full. */
  take(holder: SlotHolder, limits: readonly SlotLimit[]): Promise<SlotLimit | null>;
  /** Gives all slots of the holder back; never waits. One that Redis does not hear of expires with its lease. */
  give(holder: SlotHolder): void;
  /** Announces the slots of these leases again: they expire one lease from now. Never waits. */
  renew(tokens: readonly string[]): void;
  /** Calls `nudge` once when a holder of this process gives a slot of one of these limits back. Returns how to take it off. */
  onRoom(limits: readonly SlotLimit[], nudge: () => void): () => void;
  /** Slots that this process holds. */
  readonly held: number;
};

const TAKE = redisScript(`
local t = redis.call("TIME")
local now = t[1] * 1000 + math.floor(t[2] / 1000)
for i, key in ipairs(KEYS) do
  redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
  if redis.call("ZCARD", key) >= tonumber(ARGV[2 + i]) and not redis.call("ZSCORE", key, ARGV[1]) then
    return i
  end
end
for _, key in ipairs(KEYS) do
  redis.call("ZADD", key, now + ARGV[2], ARGV[1])
  redis.call("PEXPIRE", key, ARGV[2])
end
return 0
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
  const held = new Map<string, { readonly token: string; readonly keys: readonly AdmissionKey[] }>();
  const nudges = new Map<AdmissionKey, Set<() => void>>();

  const keyOf = (key: AdmissionKey) => `${parts.prefix}:admission:slots:${key}`;

  async function findFullInSql(holder: SlotHolder, limits: readonly SlotLimit[]): Promise<SlotLimit | null> {
    const running = await Promise.all(limits.map(({ key }) => parts.countRunningBefore(key, holder)));
    return limits.find(({ slotsMax }, index) => (running[index] ?? 0) >= slotsMax) ?? null;
  }

  function announce(entries: readonly (readonly [AdmissionKey, string])[]): void {
    for (let first = 0; first < entries.length; first += ANNOUNCED_MAX) {
      const some = entries.slice(first, first + ANNOUNCED_MAX);
      const keys = some.map(([key]) => keyOf(key));
      void redis.run(ANNOUNCE, keys, [leaseMs, ...some.map(([, member]) => member)]);
    }
  }

  function announceAll(isMeant: (token: string) => boolean): void {
    const entries = [...held].flatMap(([member, { token, keys }]) =>
      isMeant(token) ? keys.map((key) => [key, member] as const) : [],
    );
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
      const args = [holder.member, leaseMs, ...limits.map(({ slotsMax }) => slotsMax)];
      const reply = await redis.run(TAKE, keys.map(keyOf), args);
      const full = reply === AWAY ? await findFullInSql(holder, limits) : (limits[Number(reply) - 1] ?? null);
      if (full === null) held.set(holder.member, { token: holder.token, keys });
      return full;
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

/** The limits of a hop that have slots. */
export function slotLimitsOf(limits: readonly (Limit | null)[]): SlotLimit[] {
  return limits.flatMap((limit) => (limit?.slotsMax == null ? [] : [{ key: limit.key, slotsMax: limit.slotsMax }]));
}

function nudgeOne(waiting: ReadonlySet<() => void> | undefined): void {
  for (const nudge of waiting ?? []) {
    nudge();
    return;
  }
}
