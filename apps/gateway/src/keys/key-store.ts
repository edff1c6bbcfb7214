import {
  type ApiKey,
  type ApiKeyPage,
  type ApiKeyQuery,
  type CreateApiKey,
  type CreatedApiKey,
  localFailure,
  type Principal,
  type Result,
} from "@keble-scraper/contract";
import { type Actor, type Database, findApiKeyByHash, listApiKeys, readCursor } from "@keble-scraper/db";
import { createApiKey, hashApiKey, revokeApiKey } from "@keble-scraper/db/commands/keys";
import { DependencyUnavailable } from "@keble-scraper/service";
import { LRUCache } from "lru-cache";
import { ApiFailure } from "../api-failure.ts";
import { fromDatabase, inTime } from "../from-database.ts";

/** The keys of a deployment. All but `authenticate` go to the database each time. */
export type KeyStore = {
  /** Who an `Authorization` header speaks for. A key that was revoked elsewhere may pass for up to 5 s more. */
  authenticate(authorization: string | undefined): Promise<Result<Principal>>;
  create(key: CreateApiKey, by: Actor): Promise<CreatedApiKey>;
  list(query: ApiKeyQuery): Promise<ApiKeyPage>;
  revoke(id: string, by: Actor): Promise<Result<ApiKey>>;
};

/** How long a key is believed from when it was asked about: the bound on a revocation by another process. */
const REMEMBER_MS = 5_000;
/** The most keys remembered, strangers' wrong ones included; about 3 MB. */
const REMEMBERED_MAX = 10_000;
/** How long a caller waits for the look-up of a key, in milliseconds. It takes one or two. */
const LOOK_UP_MS = 2_000;
/** The most look-ups that Postgres owes an answer to. At four at a time, these are a fifth of a second's work. */
const UNANSWERED_MAX = 1_000;

/** One `Bearer` credential of visible ASCII; ours are 51 characters. */
const BEARER = /^Bearer +([\x21-\x7e]{1,200})$/iu;

type Found = { readonly principal: Principal | null };

/**
 * Keys in `database`. `now` is a monotonic clock in milliseconds; the test's own, or the process's. `auditDays` is how long
 * the audit rows of what is done to keys are kept.
 */
export function createKeyStore(
  database: Pick<Database, "commands" | "reads">,
  { now, auditDays }: { readonly now: () => number; readonly auditDays: number },
): KeyStore {
  // `ttlResolution` 0: a key that expires must not live on a cached reading of the clock.
  const remembered = new LRUCache<string, Found>({ max: REMEMBERED_MAX, ttlResolution: 0, perf: { now } });
  const asked = new Map<string, Promise<Found>>();
  let revocations = 0;
  let unanswered = 0;

  async function ask(hash: Buffer, name: string): Promise<Found> {
    const before = revocations;
    const askedAt = now();
    unanswered += 1;
    const key = await fromDatabase(() => findApiKeyByHash(database.commands, hash)).finally(() => (unanswered -= 1));
    const found = { principal: key?.principal ?? null };
    // An answer may come long after it was true.
    const ttl = Math.floor(Math.min(REMEMBER_MS, key?.expiresInMs ?? REMEMBER_MS) - (now() - askedAt));
    // What was read before a revocation is not remembered after it. A ttl of 0 would mean for ever.
    if (before === revocations && ttl > 0) {
      remembered.set(name, found, { ttl });
    }
    return found;
  }

  /** One look-up serves all who come with the same key at the same moment, and none of them waits for it for long. */
  async function find(secret: string): Promise<Found> {
    const hash = hashApiKey(secret);
    const name = hash.toString("base64");
    const known = remembered.get(name) ?? asked.get(name);
    if (known !== undefined) {
      return known;
    }
    if (unanswered >= UNANSWERED_MAX) {
      throw new DependencyUnavailable("database", "TIMEOUT");
    }
    const asking = inTime(ask(hash, name), LOOK_UP_MS).finally(() => {
      if (asked.get(name) === asking) {
        asked.delete(name);
      }
    });
    asked.set(name, asking);
    return asking;
  }

  return {
    async authenticate(authorization) {
      const secret = BEARER.exec(authorization ?? "")?.[1];
      if (secret === undefined) {
        return { ok: false, failure: localFailure("UNAUTHENTICATED") };
      }
      const found = await find(secret);
      return found.principal === null
        ? { ok: false, failure: localFailure("UNAUTHENTICATED") }
        : { ok: true, value: found.principal };
    },
    create: (key, by) =>
      fromDatabase(() =>
        createApiKey(
          database.commands,
          {
            name: key.name,
            kind: key.kind,
            callerId: key.callerId ?? null,
            scopes: key.scopes,
            expiresAt: key.expiresAt === undefined ? null : new Date(key.expiresAt),
          },
          by,
          auditDays,
        ),
      ),
    async list(query) {
      const after = readCursor(query.cursor);
      if (!after.ok) throw new ApiFailure(after.failure);
      return fromDatabase(() => listApiKeys(database.reads, { limit: query.limit, afterId: after.value }));
    },
    async revoke(id, by) {
      const revoked = await fromDatabase(() => revokeApiKey(database.commands, id, by, auditDays));
      // They are remembered by hash, so all are forgotten: in this process a revoked key is refused from here on.
      revocations += 1;
      asked.clear();
      remembered.clear();
      return revoked;
    },
  };
}
