import { constants } from "node:fs";
import { open, realpath } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type BinaryStore, LIST_PAGE_MAX, type StoreIdentity } from "./binary-store.ts";
import { claimOwner } from "./claim-owner.ts";
import { createDirectorySync } from "./directory-sync.ts";
import { LOCAL_DISK, type LocalEdge, unlinkIfThere } from "./local-edge.ts";
import { listLocal, lstatIfThere, shardNames } from "./local-listing.ts";
import { checkedPrefix, SHARDS, shardOf, TEMP_PREFIX, toLocalPath } from "./local-names.ts";
import { putLocalOwner, readLocalOwner } from "./local-owner.ts";
import { writeLocal } from "./local-write.ts";
import { isStrayMark } from "./process-mark.ts";
import { createFaulting, errnoOf, toStoreFault } from "./store-unavailable.ts";
import { createWriteGate } from "./write-gate.ts";

/** Bodies over 1 MiB count as large: with more than four at once each gets slower on two cores and one disk (measured). */
const LARGE_BYTES = 1024 * 1024;
const LARGE_WRITES_MAX = 4;

const faulting = createFaulting(toStoreFault);

/**
 * A store in a local directory, for development and tests. Object files lie in 256 shard folders below
 * `<directory>/<prefix>`, named `<sha256>.<generation>` (0600, folders 0700). `fsync: "OFF"` drops the promise that a put is
 * durable, for throw-away data alone. Several processes may share a directory.
 */
export function createLocalStore(options: {
  readonly directory: string;
  readonly prefix: string;
  readonly fsync?: "ON" | "OFF";
  readonly edge?: LocalEdge;
}): BinaryStore {
  const directory = resolve(options.directory);
  const prefix = checkedPrefix(options.prefix);
  const root = join(directory, prefix);
  const edge = options.fsync === "OFF" ? withoutSync(options.edge ?? LOCAL_DISK) : (options.edge ?? LOCAL_DISK);
  const syncDirectory = createDirectorySync(async (path) => edge.syncDirectory(path));
  const asLargeWrite = createWriteGate(LARGE_WRITES_MAX);
  const knownShards = new Set<string>();
  let identity: StoreIdentity | null = null;

  async function openShard(sha256: string): Promise<string> {
    const shard = join(root, shardOf(sha256));
    if (!knownShards.has(shard)) {
      await edge.makeDirectory(shard);
      await syncDirectory(root);
      knownShards.add(shard);
    }
    return shard;
  }

  return {
    name: "artifact-store",

    start: faulting(async () => {
      await edge.makeDirectory(root);
      for (let path = root; path !== dirname(directory); path = dirname(path)) await syncDirectory(dirname(path));
      await sweepTemps(edge, root, { before: new Date(), signal: NEVER });
      identity = { kind: "LOCAL", prefix, directory: await realpath(directory) };
    }),

    async stop() {
      await Promise.resolve();
    },

    put: faulting(async (body, key) => {
      if (body.sha256 !== key.sha256) throw new Error("the key's hash is not the body's");
      const target = join(root, toLocalPath(key));
      async function write(): Promise<void> {
        const shard = await openShard(key.sha256);
        try {
          await writeLocal(edge, { shard, target }, body);
        } catch (error) {
          // The folder may have been removed by hand: make it anew at the next put.
          knownShards.delete(shard);
          throw error;
        }
        await syncDirectory(shard);
      }
      await (body.sizeBytes > LARGE_BYTES ? asLargeWrite(write) : write());
    }),

    head: faulting(async (key) => {
      const stats = await lstatIfThere(join(root, toLocalPath(key)));
      return stats?.isFile() === true ? { sizeBytes: stats.size } : null;
    }),

    read: faulting(async (key, range) => {
      const path = join(root, toLocalPath(key));
      try {
        const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
        return handle.createReadStream(range === undefined ? {} : { start: range.start, end: range.end });
      } catch (error) {
        // ELOOP: a link, which the store has not written.
        const code = errnoOf(error);
        if (code === "ENOENT" || code === "ELOOP") return null;
        throw error;
      }
    }),

    delete: faulting(async (key) => {
      const path = join(root, toLocalPath(key));
      await unlinkIfThere(edge, path);
      if ((await lstatIfThere(dirname(path))) !== null) await syncDirectory(dirname(path));
    }),

    list: faulting(async (cursor, limit = LIST_PAGE_MAX) => listLocal(root, cursor, limit)),

    removeStrays: faulting(async (before, signal) => sweepTemps(edge, root, { before, signal })),

    readOwner: faulting(async () => readLocalOwner(root)),

    claimOwner: faulting(async (text) =>
      claimOwner({ put: async () => putLocalOwner(edge, root, text), read: async () => readLocalOwner(root) }),
    ),

    identity() {
      if (identity === null) throw new Error("the store is not started");
      return identity;
    },
  };
}

function withoutSync(edge: LocalEdge): LocalEdge {
  const skip = async (): Promise<void> => Promise.resolve();
  return {
    ...edge,
    syncDirectory: skip,
    create: async (path) => ({ ...(await edge.create(path)), sync: skip }),
  };
}

/**
 * Removes the scratch files that dead processes left and that were last written before `before`. Returns how many. Reads
 * every folder once: seconds at ten million objects.
 */
async function sweepTemps(
  edge: LocalEdge,
  root: string,
  which: { readonly before: Date; readonly signal: AbortSignal },
): Promise<number> {
  let removed = 0;
  for (const folder of [root, ...SHARDS.map((shard) => join(root, shard))]) {
    for (const name of await shardNames(folder)) {
      if (which.signal.aborted) return removed;
      if (!name.startsWith(TEMP_PREFIX)) continue;
      const path = join(folder, name);
      const stats = await lstatIfThere(path);
      if (stats === null || stats.mtimeMs >= which.before.getTime()) continue;
      if (!isStrayMark(name.slice(TEMP_PREFIX.length), Date.now() - stats.mtimeMs)) continue;
      await unlinkIfThere(edge, path);
      removed += 1;
    }
  }
  return removed;
}

const NEVER = new AbortController().signal;
