import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import {
  type BinaryKey,
  createGeneration,
  createS3Store,
  createSpool,
  type S3Store,
} from "@keble-scraper/artifact-store";
import { createDatabase, type Database, migrate } from "@keble-scraper/db";
import { recordDownload } from "@keble-scraper/db/commands/artifacts";
import { createTestDatabase, type S3Server, startS3, type TestDatabase } from "@keble-scraper/testkit";
import { v7 as uuidv7 } from "uuid";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runProgram } from "./run-program.ts";

const never = new AbortController().signal;
const PREFIX = "kept";
let directory = "";
let s3: S3Server;
let store: S3Store;
let testDatabase: TestDatabase;
let database: Database;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "keble-reconcile-"));
  s3 = await startS3();
  const { accessKeyId, bucket, region, secretAccessKey, url: endpoint } = s3;
  const place = { accessKeyId, bucket, endpoint, region, secretAccessKey };
  store = createS3Store({ ...place, prefix: PREFIX, dialect: "S3", addressing: "PATH" });
  await store.start(never);
  testDatabase = await createTestDatabase({ migrate });
  const pools = { applicationName: "test", commandConnections: 2, readConnections: 1, statementTimeoutMs: 20_000 };
  database = createDatabase({ url: testDatabase.url, ...pools });
});
afterAll(async () => {
  await store.stop(0);
  await s3[Symbol.asyncDispose]();
  await database.stop(performance.now() + 1_000);
  await testDatabase[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

type Entry = Record<string, unknown> & { readonly type: string };

/** Runs the command over a log's lines; what it printed, and how it ended. */
async function reconcile(
  log: readonly string[] | Buffer,
  args: readonly string[],
  options: { readonly name?: string; readonly env?: Record<string, string>; readonly times?: number } = {},
): Promise<{ entries: Entry[]; text: string; ended: string }> {
  const file = join(directory, options.name ?? `${uuidv7()}.log`);
  await writeFile(file, Buffer.isBuffer(log) ? log : log.map((line) => `${line}\n`).join(""));
  const files = Array.from({ length: options.times ?? 1 }, () => file);
  const run = runProgram(["reconcile", ...args, ...files], {
    SCRAPER_ENVIRONMENT: "test",
    SCRAPER_DATABASE_URL: testDatabase.url,
    ...(options.env ?? {
      SCRAPER_S3_ENDPOINT: s3.url,
      SCRAPER_S3_BUCKET: s3.bucket,
      SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
      SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
      SCRAPER_S3_PREFIX: PREFIX,
    }),
  });
  const ended = await run.ended.then(
    () => "well",
    (error: unknown) => (error as { reason?: string }).reason ?? String(error),
  );
  const { lines } = run;
  const entries = args.includes("--json") ? lines.map((line) => JSON.parse(line) as Entry) : [];
  return { entries, text: lines.join("\n"), ended };
}

/** Another object with its rows; what it holds is its generation. */
async function storeObject(): Promise<{ key: BinaryKey; artifactId: string }> {
  const spool = createSpool({ directory: join(directory, "spool") });
  await spool.start(never);
  const body = spool.open();
  await body.write(Buffer.from(uuidv7()));
  const spooled = await body.finish();
  const key = { sha256: spooled.sha256, generation: createGeneration() };
  await store.put(spooled, key);
  await spooled.discard();
  const [artifactId, blobId, sha256] = [uuidv7(), uuidv7(), Buffer.from(key.sha256, "hex")];
  await database.commands`
    insert into blobs (id, sha256, generation, size_bytes) values (${blobId}, ${sha256}, ${key.generation}, 36)`;
  await database.commands`
    insert into artifacts (id, caller_id, blob_id, sha256, size_bytes, source_url, final_url, http_status, fetched_at)
    values (${artifactId}, 'shop', ${blobId}, ${sha256}, 36, 'https://a.example/', 'https://a.example/', 200, now())`;
  return { key, artifactId };
}

/** A link with its row, unless it is to have none; `row` is what the row says that the link does not. */
async function sign(
  { artifactId, key }: { readonly key: BinaryKey; readonly artifactId: string },
  row: { readonly key?: BinaryKey; readonly expiresAt?: Date } | "NONE" = {},
): Promise<{ auditId: string; url: string }> {
  const auditId = uuidv7();
  const expiresAtMs = Math.floor(Date.now() / 1000) * 1000 + 300_000;
  const url = await store.signDownload({
    key,
    auditId,
    expiresAtMs,
    contentType: "text/plain",
    disposition: "attachment",
  });
  if (row === "NONE") return { auditId, url };
  await recordDownload(
    database.commands,
    {
      auditId,
      artifactId,
      callerId: null,
      kind: "SERVICE",
      purpose: "ARTIFACT_DOWNLOAD",
      expiresAt: row.expiresAt ?? new Date(expiresAtMs),
      ...(row.key ?? key),
    },
    { actor: "a-key", requestId: "r" },
  );
  return { auditId, url };
}

async function get(url: string, headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(url, { headers });
  await answer.arrayBuffer();
  return answer.status;
}

/** The log of what `work` asked of the bucket. */
async function logOf(format: "S3" | "OSS" | "MINIO", work: () => Promise<void>): Promise<string[]> {
  const before = s3.accessLog(format).length;
  await work();
  return s3.accessLog(format).slice(before);
}

const mismatchesOf = (entries: readonly Entry[]) =>
  entries.filter(({ type }) => type === "mismatch").map(({ reason, auditId }) => [reason, auditId]);

describe("keble-scraper reconcile", () => {
  it.each(["S3", "OSS", "MINIO"] as const)(
    "A6 finds every read of a %s log accounted for, the services' own too, and tells which links were used how often",
    async (format) => {
      const object = await storeObject();
      const [once, often, unread] = [await sign(object), await sign(object), await sign(object)];
      const since = new Date(Date.now() - 1_000);
      const log = await logOf(format, async () => {
        expect(await get(once.url)).toBe(200);
        expect(await get(often.url)).toBe(200);
        expect(await get(often.url, { range: "bytes=0-3" })).toBe(206);
        expect(await get(unread.url.replace(unread.auditId, uuidv7()))).toBe(403);
        await buffer((await store.read(object.key))!);
        await store.head(object.key);
      });
      const args = ["--format", format.toLowerCase(), "--json", "--verbose", "--since", since.toISOString()];
      const { ended, entries } = await reconcile(log, args, { times: 2 });
      expect(ended).toBe("well");
      expect(mismatchesOf(entries)).toEqual([]);
      expect(entries.filter(({ type }) => type === "unused").map(({ auditId }) => auditId)).toContain(unread.auditId);
      expect(entries.at(-1)).toMatchObject({
        type: "summary",
        mismatches: 0,
        log: { lines: 12, reads: 3, doubled: 3, own: 2, elsewhere: 0, others: 4, malformed: 0 },
        links: { readOnce: 1, readOften: 1, reads: 3 },
      });
    },
  );

  it("A6 tells of every read that has no row, and of every row whose read is not what it says, and ends with 1", async () => {
    const [object, other] = [await storeObject(), await storeObject()];
    const links = {
      fine: await sign(object),
      unknown: await sign(object, "NONE"),
      elsewhere: await sign(object, { key: other.key }),
      generation: await sign(object, { key: { ...object.key, generation: createGeneration() } }),
      late: await sign(object, { expiresAt: new Date(Date.now() - 120_000) }),
      barelyLate: await sign(object, { expiresAt: new Date(Date.now() - 30_000) }),
    };
    const log = await logOf("S3", async () => {
      for (const { url } of Object.values(links)) expect(await get(url)).toBe(200);
    });
    const fine = log[0] ?? "";
    const again = (line: string) => line.replace(/ [A-Z0-9-]+ REST\./i, ` ${uuidv7()} REST.`);
    log.push(
      again(fine.replaceAll(links.fine.auditId, "not-an-id")),
      again(fine.replace(`x-keble-audit-id=${links.fine.auditId}`, "x-other=1")),
      again(fine.replace(/\[[^\]]+\]/, "[01/Jan/2020:00:00:00 +0000]")),
      again(fine.replaceAll("QueryString", "AuthHeader")),
      again(fine.replaceAll("QueryString", "-")),
      again(fine.replace(` ${s3.bucket} `, " another-bucket ").replace("x-keble-audit-id", "x-other")),
      again(fine.replaceAll(`${PREFIX}/`, "others/").replace("x-keble-audit-id", "x-other")),
    );
    const { ended, entries } = await reconcile(log, ["--format", "s3", "--json"]);
    expect(ended).toBe("MISMATCH");
    expect(mismatchesOf(entries)).toEqual([
      ["UNKNOWN_AUDIT_ID", links.unknown.auditId],
      ["OTHER_OBJECT", links.elsewhere.auditId],
      ["OTHER_OBJECT", links.generation.auditId],
      ["AFTER_EXPIRY", links.late.auditId],
      ["UNKNOWN_AUDIT_ID", "not-an-id"],
      ["NO_AUDIT_ID", null],
      ["BEFORE_ROW", links.fine.auditId],
      ["NOT_BY_LINK", links.fine.auditId],
      ["NOT_BY_LINK", links.fine.auditId],
    ]);
    expect(entries.at(-1)).toMatchObject({ mismatches: 9, log: { elsewhere: 2 } });
    const strict = await reconcile(log, ["--format", "s3", "--json", "--skew-seconds", "0"]);
    expect(mismatchesOf(strict.entries)).toContainEqual(["AFTER_EXPIRY", links.barelyLate.auditId]);
    const { text } = await reconcile(log, ["--format", "s3"]);
    expect(text).toContain(`MISMATCH AFTER_EXPIRY: read after its link had ended: `);
    expect(text).toContain("9 reads do not agree with the audit");
  });

  it("A6 takes a header's signature for the deployment's own only when the log does not name another key", async () => {
    const object = await storeObject();
    for (const format of ["MINIO", "OSS"] as const) {
      const log = await logOf(format, async () => {
        await buffer((await store.read(object.key))!);
      });
      const args = ["--format", format.toLowerCase(), "--json"];
      expect((await reconcile(log, args)).ended).toBe("well");
      const another = log.map((line) => line.replaceAll(s3.accessKeyId, "SOMEBODYELSESKEY"));
      const { ended, entries } = await reconcile(another, args);
      expect(ended).toBe("MISMATCH");
      expect(mismatchesOf(entries)).toEqual([["OTHER_KEY", null]]);
    }
  });

  it("reads packed logs, takes only what is in the asked time, and says nothing of a log without reads", async () => {
    const object = await storeObject();
    const link = await sign(object);
    const log = await logOf("S3", async () => {
      await get(link.url);
    });
    const packed = gzipSync(`${log.join("\n")}\n`);
    const args = ["--format", "s3", "--json"];
    const { entries } = await reconcile(packed, args, { name: "packed.log.gz" });
    expect(entries.at(-1)).toMatchObject({ log: { reads: 1 } });
    const early = await reconcile(log, [...args, "--until", "2020-01-01T00:00:00Z"]);
    expect(early.entries.at(-1)).toMatchObject({ log: { reads: 0, untimely: 1 }, links: { signed: 0 } });
    const late = await reconcile(log, [...args, "--since", "2999-01-01T00:00:00Z"]);
    expect(late.entries.at(-1)).toMatchObject({ log: { reads: 0, untimely: 1 } });
    const nothing = await reconcile([], args);
    expect(nothing.entries).toEqual([
      expect.objectContaining({ type: "summary", links: null, mismatches: 0 }) as unknown,
    ]);
    const cut = await reconcile(packed.subarray(0, packed.byteLength - 12), args, { name: "cut.log.gz" });
    expect(cut.ended).toBe("USAGE");
  });

  it("counts lines that it can't read, and names their places without their text", async () => {
    const secret = "a-signature-in-a-broken-line";
    const broken = [secret, "", `${secret} `.repeat(5_000), ...Array.from({ length: 30 }, () => secret)];
    const [readable = ""] = await logOf("S3", async () => {
      await store.list(null);
    });
    const { ended, entries, text } = await reconcile([...broken, readable], ["--format", "s3", "--json"]);
    expect(ended).toBe("well");
    expect(entries.at(-1)).toMatchObject({ log: { lines: 33, malformed: 32 } });
    const shown = entries.filter(({ type }) => type === "malformed");
    expect(shown).toHaveLength(20);
    expect(shown[1]).toMatchObject({ place: expect.stringMatching(/\.log:3$/) as string, reason: "too long" });
    expect(text).not.toContain(secret);
  });

  // It would say that every read has its row.
  // Whoever reads an open bucket writes into its log: one line must not keep all others from being held against the audit.
  it("A6 a read that says what no database takes is a mismatch like any other", async () => {
    const { key } = await storeObject();
    const line = (requestID: string, id: string, time = "2026-11-30T17:00:00Z") =>
      JSON.stringify({
        time,
        requestID,
        api: {
          name: "GetObject",
          bucket: s3.bucket,
          object: `${PREFIX}/${key.sha256}/${key.generation}`,
          statusCode: 200,
        },
        requestQuery: { "x-keble-audit-id": id },
      });
    const log = [
      line("a", "\0"),
      line("b\0", "\ud800"),
      line("c".repeat(60_000), "x"),
      line("d", "y".repeat(40_000)),
      line("e", "z", "0000-01-01T00:00:00Z"),
      line("f", "z", "9999-12-31T23:59:59-14:00"),
    ];
    const { ended, entries } = await reconcile(log, ["--format", "minio", "--json"]);
    expect(ended).toBe("MISMATCH");
    expect(mismatchesOf(entries).map(([reason]) => reason)).toEqual(
      Array.from({ length: 3 }, () => "UNKNOWN_AUDIT_ID"),
    );
    expect(entries.at(-1)).toMatchObject({ log: { lines: 6, reads: 3, malformed: 3 } });
  });

  it("A6 takes no log for an accounted one of which it can't read a line", async () => {
    const log = await logOf("MINIO", async () => {
      await store.list(null);
    });
    expect((await reconcile(log, ["--format", "minio"])).ended).toBe("well");
    expect((await reconcile(log, ["--format", "s3"])).ended).toBe("USAGE");
  });

  it("reads the log of a local store's download server, and refuses the log of a store that the settings do not name", async () => {
    const object = await storeObject();
    const link = await sign(object);
    const line = (auditId: string) =>
      JSON.stringify({
        level: "info",
        time: new Date().toISOString(),
        name: "artifacts",
        requestId: `request of ${auditId}`,
        auditId,
        ...object.key,
        sent: 36,
        length: 36,
        tookMs: 1,
        msg: "download.served",
      });
    const env = { SCRAPER_LOCAL_ARTIFACT_DIRECTORY: directory, SCRAPER_LOCAL_ARTIFACT_BASE_URL: "http://127.0.0.1:1" };
    const log = [line(link.auditId), line(uuidv7())];
    const { ended, entries } = await reconcile(log, ["--format", "local", "--json"], { env });
    expect(ended).toBe("MISMATCH");
    expect(mismatchesOf(entries)).toMatchObject([["UNKNOWN_AUDIT_ID", expect.any(String)]]);
    expect((await reconcile(log, ["--format", "local"])).ended).toBe("USAGE");
    expect((await reconcile(log, ["--format", "s3"], { env })).ended).toBe("USAGE");
    expect((await reconcile(log, ["--format", "s3", "--since", "yesterday"])).ended).toContain("It must be such as");
  });

  it("takes five thousand reads in pages and tells of each that has no row", async () => {
    const key = `${"ab".repeat(32)}/0123456789abcdef`;
    const log = Array.from({ length: 5_000 }, (_, n) =>
      JSON.stringify({
        time: new Date().toISOString(),
        api: { name: "GetObject", bucket: s3.bucket, object: `${PREFIX}/${key}`, statusCode: 200 },
        requestID: `request-${n % 4_000}`,
        requestQuery: { "X-Amz-Signature": "s", "x-keble-audit-id": uuidv7() },
      }),
    );
    const { entries } = await reconcile(log, ["--format", "minio", "--json"]);
    expect(mismatchesOf(entries)).toHaveLength(4_000);
    expect(entries.at(-1)).toMatchObject({ mismatches: 4_000, log: { reads: 4_000, doubled: 1_000 } });
  });
});
