import { createHash, randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rename, rm, truncate, unlink, utimes, writeFile } from "node:fs/promises";
import { createReadStream } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import {
  type BinaryKey,
  type BinaryStore,
  createFence,
  createGeneration,
  createStore,
  FenceRefused,
  StoreUnavailable,
} from "@keble-scraper/artifact-store";
import { createDatabase, findNamespace, hasStoredRows, migrate } from "@keble-scraper/db";
import { advanceListing, listUnnamedObjects, openListing, queueOrphan } from "@keble-scraper/db/commands/artifacts";
import { claimTestStore } from "@keble-scraper/db/testing";
import { createLogger, parseSettings, type Settings, SYSTEM_CLOCK } from "@keble-scraper/service";
import { createTestDatabase, startS3, type TestDatabase } from "@keble-scraper/testkit";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createMaintenanceWorker } from "../src/app.ts";
import { createListingScrub, ORPHAN_AGE_MS } from "../src/scrub/create-listing-scrub.ts";
import { scrubSteps } from "../src/scrub/scrub-steps.ts";

const never = new AbortController().signal;
const HOUR_MS = 3_600_000;

/** A store as somebody sees it who can reach behind it. */
type Backend = {
  readonly env: Record<string, string>;
  plant(key: BinaryKey, bytes: Buffer): Promise<void>;
  remove(key: BinaryKey): Promise<void>;
  truncate(key: BinaryKey): Promise<void>;
  setStoredAt(key: BinaryKey, at: Date): Promise<void>;
  /**
   * Has the next read of `gone` find nothing, and every read of `cut` break off: what the service does, or `read` in place
   * of the store's own where nothing can be told to.
   */
  misread(gone: BinaryKey, cut: BinaryKey): { readonly read?: BinaryStore["read"] };
  /** Takes the whole place away, as a disk that is not mounted or a service that is down; the answer brings it back. */
  takeAway(): Promise<() => Promise<void>>;
  close(): Promise<void>;
};

async function openLocal(): Promise<Backend> {
  const directory = await mkdtemp(join(tmpdir(), "keble-scrub-"));
  const root = join(directory, "artifacts");
  const pathOf = (key: BinaryKey) => join(root, key.sha256.slice(0, 2), `${key.sha256}.${key.generation}`);
  return {
    env: { SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory, SCRAPER_LOCAL_ARTIFACT_BASE_URL: "http://127.0.0.1:1" },
    async plant(key, bytes) {
      await mkdir(dirname(pathOf(key)), { recursive: true });
      await writeFile(pathOf(key), bytes);
    },
    remove: (key) => unlink(pathOf(key)),
    truncate: (key) => truncate(pathOf(key), 3),
    setStoredAt: (key, at) => utimes(pathOf(key), at, at),
    misread(gone, cut) {
      let isFound = false;
      return {
        async read(key) {
          if (key.sha256 === cut.sha256) return Readable.from(breakOff());
          const isGone = key.sha256 === gone.sha256 && !isFound;
          isFound ||= isGone;
          return isGone ? null : createReadStream(pathOf(key));
        },
      };
    },
    async takeAway() {
      await rename(root, `${root}-away`);
      await mkdir(root);
      return async () => {
        await rm(root, { recursive: true });
        await rename(`${root}-away`, root);
      };
    },
    close: () => rm(directory, { recursive: true }),
  };
}

async function openS3(): Promise<Backend> {
  const s3 = await startS3();
  const nameOf = (key: BinaryKey) => `kept/${key.sha256}/${key.generation}`;
  return {
    env: {
      SCRAPER_S3_ENDPOINT: s3.url,
      SCRAPER_S3_BUCKET: s3.bucket,
      SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
      SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
      SCRAPER_S3_PREFIX: "kept",
    },
    plant: (key, bytes) => s3.plant(nameOf(key), bytes),
    remove: (key) => Promise.resolve(void s3.remove(nameOf(key))),
    truncate: (key) => s3.damage(nameOf(key), "TRUNCATE"),
    setStoredAt: (key, at) => Promise.resolve(s3.setStoredAt(nameOf(key), at)),
    misread(gone, cut) {
      const none = { kind: "STATUS", status: 404, code: "NoSuchKey" } as const;
      s3.fail({ operation: "GetObject", key: nameOf(gone) }, none);
      const broken = { kind: "CUT_ANSWER", afterBytes: 1_000 } as const;
      s3.fail({ operation: "GetObject", key: nameOf(cut), times: Infinity }, broken);
      return {};
    },
    async takeAway() {
      await s3.stop();
      return () => s3.start();
    },
    async close() {
      await s3[Symbol.asyncDispose]();
    },
  };
}

async function* breakOff() {
  yield await Promise.resolve(Buffer.alloc(1_000));
  throw new StoreUnavailable("ECONNRESET");
}

describe.each([
  ["a local directory", openLocal],
  ["S3", openS3],
] as const)("in %s", (kind, openBackend) => {
  let testDatabase: TestDatabase;
  let database: ReturnType<typeof createDatabase>;
  let backend: Backend;
  let settings: Settings;
  let store: BinaryStore;
  let sql: ReturnType<typeof createDatabase>["commands"];
  const lines: Record<string, unknown>[] = [];
  const logger = createLogger({
    name: "test",
    level: "info",
    destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
  });

  beforeAll(async () => {
    testDatabase = await createTestDatabase({ migrate });
    const pools = { applicationName: "test", commandConnections: 6, readConnections: 1, statementTimeoutMs: 20_000 };
    database = createDatabase({ url: testDatabase.url, ...pools });
    sql = database.commands;
    backend = await openBackend();
    const parsed = parseSettings({
      SCRAPER_ENVIRONMENT: "test",
      SCRAPER_DATABASE_URL: testDatabase.url,
      SCRAPER_REDIS_URL: "redis://127.0.0.1:1",
      SCRAPER_SERVICE_TOKEN: "a-service-token-for-tests",
      SCRAPER_SECRET_KEY: "ab".repeat(32),
      ...backend.env,
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.faults));
    settings = parsed.value;
    await claimTestStore(settings, testDatabase);
    store = createStore(settings.artifacts.store);
    await store.start(never);
  });
  afterAll(async () => {
    await store.stop(0);
    await backend.close();
    await database.stop(performance.now() + 1_000);
    await testDatabase[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    lines.length = 0;
    await sql`update store_scrub set cursor = null, pass_started_at = null, pass_ended_at = null`;
    await sql`update blobs set verified_at = clock_timestamp()`;
  });
  afterEach(async () => {
    await sql`delete from store_findings`;
  });

  /** The two steps of a worker. `reads` counts what it reads, by hash. `claim`: of a database that claimed another store. */
  function openWorker(
    scrub: Partial<Settings["artifacts"]["scrub"]> = {},
    read: BinaryStore["read"] = store.read,
    claim: string | null = null,
    readOwner: BinaryStore["readOwner"] = store.readOwner,
  ) {
    const reads: string[] = [];
    const { artifacts } = settings;
    const fence = createFence({
      store: { ...store, readOwner },
      owner: artifacts.namespaceOwner,
      async findNamespace() {
        const row = await findNamespace(sql);
        return row === null || claim === null ? row : { ...row, claim };
      },
      hasRows: () => hasStoredRows(sql),
    });
    const [listing, verifying] = scrubSteps({
      settings: { ...settings, artifacts: { ...artifacts, scrub: { ...artifacts.scrub, ...scrub } } },
      sql,
      store: {
        ...store,
        read(key, range) {
          reads.push(key.sha256);
          return read(key, range);
        },
      },
      fence,
      clock: SYSTEM_CLOCK,
      logger,
    });
    return { reads, queueOrphans: () => listing!.run(never), verify: (signal = never) => verifying!.run(signal) };
  }

  function newObject(bytes = randomBytes(100)) {
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    return { sha256, generation: createGeneration(), bytes };
  }

  /** Stored bytes with their rows, unread for two hours. */
  async function storeArtifact(bytes = randomBytes(100)) {
    const object = newObject(bytes);
    const [id, blobId] = [crypto.randomUUID(), crypto.randomUUID()];
    await backend.plant(object, bytes);
    await sql`
      insert into blobs (id, sha256, generation, size_bytes, verified_at)
      values (${blobId}, decode(${object.sha256}, 'hex'), ${object.generation}, ${bytes.byteLength}, clock_timestamp() - interval '2 h')`;
    await sql`
      insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at, review_at)
      values (${id}, 'acme', ${blobId}, decode(${object.sha256}, 'hex'), ${bytes.byteLength}, 'https://a.example/',
              'https://a.example/', 200, clock_timestamp(), clock_timestamp() + interval '1 day')`;
    return { id, ...object };
  }

  const stateOf = async (id: string) =>
    (await sql<{ state: string }[]>`select state from artifacts where id = ${id}`)[0]?.state;
  const findings = () => sql`
    select kind, encode(sha256, 'hex') as sha256, generation from store_findings order by kind, generation`;
  const findingOf = (findingKind: string, { sha256, generation }: BinaryKey) => ({
    kind: findingKind,
    sha256,
    generation,
  });
  const logged = (msg: string) => lines.filter((line) => line["msg"] === msg);

  test("A3 an object that no row names is queued when it is over a day old, and nothing else is", async () => {
    const [old, young, kept] = [newObject(), newObject(), await storeArtifact()];
    const loser = { ...newObject(kept.bytes), generation: createGeneration() };
    for (const object of [old, young, loser]) await backend.plant(object, object.bytes);
    for (const object of [old, loser, kept]) await backend.setStoredAt(object, new Date(Date.now() - 25 * HOUR_MS));
    await backend.setStoredAt(young, new Date(Date.now() - 24 * HOUR_MS));

    expect(await openWorker().queueOrphans()).toBe(2);
    const byGeneration = (a: BinaryKey, b: BinaryKey) => (a.generation < b.generation ? -1 : 1);
    expect(await findings()).toEqual([old, loser].toSorted(byGeneration).map((object) => findingOf("ORPHAN", object)));
    const queued = await sql`
      select generation from object_deletions where due_at <= clock_timestamp() order by generation`;
    expect(queued).toEqual([old, loser].toSorted(byGeneration).map(({ generation }) => ({ generation })));
    expect(await openWorker().queueOrphans()).toBe(0);
    expect(logged("scrub.orphan_queued")).toHaveLength(2);
  });

  test("A4 objects of a store that was put in this one's place are nobody's orphans", async () => {
    const object = newObject();
    await backend.plant(object, object.bytes);
    await backend.setStoredAt(object, new Date(Date.now() - 25 * HOUR_MS));
    const stranger = openWorker({}, store.read, crypto.randomUUID());
    await expect(stranger.queueOrphans()).rejects.toThrow(FenceRefused);
    expect(await findings()).toEqual([]);
    expect(await sql`select 1 from object_deletions where generation = ${object.generation}`).toHaveLength(0);
    expect(await openWorker().queueOrphans()).toBe(1);
  });

  test("A3 an object whose deletion was completed since it was listed is no orphan", async () => {
    const object = newObject();
    await backend.plant(object, object.bytes);
    await backend.setStoredAt(object, new Date(Date.now() - 25 * HOUR_MS));
    const scrub = createListingScrub({
      store,
      checkPlace: () => Promise.resolve(),
      openListing: () => openListing(sql, { everyMs: 24 * HOUR_MS, ageMs: ORPHAN_AGE_MS }),
      advanceListing: (from, next) => advanceListing(sql, from, next),
      async listUnnamedObjects(objects) {
        const unnamed = await listUnnamedObjects(sql, objects);
        await backend.remove(object);
        return unnamed;
      },
      queueOrphan: (orphan) => queueOrphan(sql, orphan, 400),
      clock: SYSTEM_CLOCK,
      logger,
    });
    expect(await scrub(never)).toBe(0);
    expect(await findings()).toEqual([]);
  });

  test("A3 an object that is being written is no orphan, however far ahead the database's clock is", async () => {
    const object = newObject();
    await backend.plant(object, object.bytes);
    const scrub = createListingScrub({
      store,
      checkPlace: () => Promise.resolve(),
      openListing: () => openListing(sql, { everyMs: 24 * HOUR_MS, ageMs: -48 * HOUR_MS }),
      advanceListing: (from, next) => advanceListing(sql, from, next),
      listUnnamedObjects: (objects) => listUnnamedObjects(sql, objects),
      queueOrphan: (orphan) => queueOrphan(sql, orphan, 400),
      clock: SYSTEM_CLOCK,
      logger,
    });
    expect(await scrub(never)).toBe(0);
    await backend.remove(object);
  });

  test("A3 a pass that was killed goes on at its page, by whoever comes next", async () => {
    const objects = Array.from({ length: 7 }, () => newObject());
    for (const object of objects) {
      await backend.plant(object, object.bytes);
      await backend.setStoredAt(object, new Date(Date.now() - 25 * HOUR_MS));
    }
    const cursors: (string | null)[] = [];
    const open = (diesAtPage: number) =>
      createListingScrub({
        store: {
          head: (key) => store.head(key),
          list(cursor) {
            cursors.push(cursor);
            if (cursors.length === diesAtPage) throw new Error("killed");
            return store.list(cursor, 3);
          },
        },
        checkPlace: () => Promise.resolve(),
        openListing: () => openListing(sql, { everyMs: 24 * HOUR_MS, ageMs: ORPHAN_AGE_MS }),
        advanceListing: (from, next) => advanceListing(sql, from, next),
        listUnnamedObjects: (listed) => listUnnamedObjects(sql, listed),
        queueOrphan: (orphan) => queueOrphan(sql, orphan, 400),
        clock: SYSTEM_CLOCK,
        logger,
      });
    await expect(open(2)(never)).rejects.toThrow("killed");
    await open(0)(never);
    expect(cursors[0]).toBeNull();
    expect(cursors[1]).not.toBeNull();
    expect(cursors[2]).toBe(cursors[1]);
    expect(new Set(cursors).size).toBe(cursors.length - 1);
    const found = (await findings()).map((finding) => finding["generation"] as string);
    expect(found.toSorted()).toEqual(objects.map((object) => object.generation).toSorted());
    await open(0)(never);
    expect(new Set(cursors).size).toBe(cursors.length - 1);
  });

  test("A3 of stored objects that are read again, sound ones stay; missing, changed and cut ones are given up, loudly", async () => {
    const [sound, empty, missing, changed, cut, longer] = [
      await storeArtifact(),
      await storeArtifact(Buffer.alloc(0)),
      await storeArtifact(),
      await storeArtifact(),
      await storeArtifact(),
      await storeArtifact(),
    ];
    await backend.remove(missing);
    await backend.plant(changed, randomBytes(100));
    await backend.truncate(cut);
    await backend.plant(longer, Buffer.concat([longer.bytes, Buffer.from("more")]));

    expect(await openWorker().verify()).toBe(6);

    const states = await Promise.all([sound, empty, missing, changed, cut, longer].map(({ id }) => stateOf(id)));
    expect(states).toEqual(["AVAILABLE", "AVAILABLE", "DELETED", "DELETED", "DELETED", "DELETED"]);
    const lost = [
      findingOf("MISSING", missing),
      ...[changed, cut, longer].map((object) => findingOf("DAMAGED", object)),
    ];
    expect(await findings()).toEqual(expect.arrayContaining(lost));
    expect(await findings()).toHaveLength(4);
    expect(logged("scrub.object_lost")).toHaveLength(4);
    expect(await openWorker().verify()).toBe(0);
  });

  test("A3 a store that is away, or is an empty place, has lost nothing", async () => {
    const artifact = await storeArtifact();
    const bringBack = await backend.takeAway();
    try {
      const fault = kind === "S3" ? StoreUnavailable : FenceRefused;
      await expect(openWorker().verify()).rejects.toThrow(fault);
    } finally {
      await bringBack();
    }
    expect(await stateOf(artifact.id)).toBe("AVAILABLE");
    expect(await findings()).toEqual([]);
  });

  // A mount that comes back at once, or a proxy that answers for another bucket for a moment.
  test("A3 a place that was away for as long as an object was looked for has lost nothing", async () => {
    const artifact = await storeArtifact();
    let asked = 0;
    const isAway = () => (asked += 1) <= 2;
    const worker = openWorker(
      {},
      (key, range) => (isAway() ? Promise.resolve(null) : store.read(key, range)),
      null,
      () => (isAway() ? Promise.resolve(null) : store.readOwner()),
    );
    await expect(worker.verify()).rejects.toThrow(FenceRefused);
    expect(await stateOf(artifact.id)).toBe("AVAILABLE");
    expect(await worker.verify()).toBe(1);
    expect(await stateOf(artifact.id)).toBe("AVAILABLE");
  });

  test("A3 two workers at once read no object twice, longest unread first", async () => {
    const artifacts: { sha256: string }[] = [];
    for (let made = 0; made < 30; made += 1) artifacts.push(await storeArtifact());
    await sql`update blobs set verified_at = clock_timestamp() - interval '3 h' where sha256 = decode(${artifacts[17]!.sha256}, 'hex')`;
    const workers = [openWorker(), openWorker(), openWorker()];
    const counts = await Promise.all(workers.map((worker) => worker.verify()));
    expect(counts.reduce((sum, count) => sum + count)).toBe(30);
    const reads = workers.flatMap((worker) => worker.reads);
    expect(reads.toSorted()).toEqual(artifacts.map(({ sha256 }) => sha256).toSorted());
    expect(workers.map((worker) => worker.reads[0])).toContain(artifacts[17]!.sha256);
  });

  test("no more objects are read in a minute than the settings say; the one that goes over the bytes is the last", async () => {
    for (let made = 0; made < 6; made += 1) await storeArtifact();
    const few = openWorker({ objectsPerMinute: 2 });
    expect([await few.verify(), await few.verify()]).toEqual([2, 0]);
    const small = openWorker({ bytesPerMinute: 150 });
    expect([await small.verify(), await small.verify()]).toEqual([2, 0]);
    expect(await openWorker({ objectsPerMinute: 0 }).verify()).toBe(0);
    expect(await openWorker().verify()).toBe(2);
  });

  test("a stop in the middle of an object puts it back, judges nothing, and reads no further", async () => {
    const artifact = await storeArtifact(randomBytes(400_000));
    const stopper = new AbortController();
    const worker = openWorker();
    const stopping = worker.verify(stopper.signal);
    stopper.abort();
    await stopping;
    expect(await stateOf(artifact.id)).toBe("AVAILABLE");
    expect(await openWorker().verify()).toBe(1);
  });

  test("A3 a maintenance worker does both by itself, and deletes what it queued", async () => {
    const [orphan, lost] = [newObject(), await storeArtifact()];
    await backend.plant(orphan, orphan.bytes);
    await backend.setStoredAt(orphan, new Date(Date.now() - 25 * HOUR_MS));
    await backend.truncate(lost);
    const worker = createMaintenanceWorker({
      ...settings,
      timings: { ...settings.timings, maintenanceMs: 50 },
      logLevel: "silent",
    });
    await worker.start();
    try {
      await expect.poll(() => store.head(orphan), { timeout: 20_000 }).toBeNull();
      await expect.poll(() => stateOf(lost.id), { timeout: 20_000 }).toBe("DELETED");
    } finally {
      await worker.stop(5_000);
    }
    expect(await findings()).toEqual([findingOf("DAMAGED", lost), findingOf("ORPHAN", orphan)]);
  });

  test("A3 a first read that finds nothing, or breaks off, is not believed", async () => {
    const [gone, cut] = [await storeArtifact(), await storeArtifact(randomBytes(50_000))];
    const worker = openWorker({}, backend.misread(gone, cut).read);
    await expect(worker.verify()).rejects.toThrow(StoreUnavailable);
    await worker.verify();
    expect(logged("scrub.unconfirmed")).toMatchObject([{ sha256: gone.sha256, first: "MISSING" }]);
    expect([await stateOf(gone.id), await stateOf(cut.id)]).toEqual(["AVAILABLE", "AVAILABLE"]);
    expect(await findings()).toEqual([]);
  });
});
