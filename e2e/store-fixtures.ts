import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createS3Store, parseBinaryKey } from "@keble-scraper/artifact-store";
import { type S3Server, startS3 } from "@keble-scraper/testkit";
import postgres, { type Sql } from "postgres";
import { openRig, type Rig } from "./stack-fixtures.ts";

/** A running product whose bytes go to a bucket, with its database open as the owner. */
export type StoreRig = Rig & {
  readonly s3: S3Server;
  readonly sql: Sql;
  /** A link to an object, as whoever has the bucket's key can make one: nothing is written down. */
  sign(name: string, auditId: string): Promise<string>;
  /** Runs a command of the binary with the settings of the stack's processes; its exit code and what it printed. */
  run(...args: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }>;
};

/** What all names of objects begin with. */
export const PREFIX = "e2e/kept";

const BINARY = fileURLToPath(new URL("../apps/cli/bin/keble-scraper.js", import.meta.url));
const UNTIL_MS = 30_000;

/** Starts a bucket, its bodies in files, and a stack on it. */
export async function openStoreRig(env: Readonly<Record<string, string>>): Promise<StoreRig> {
  const directory = mkdtempSync(join(tmpdir(), "keble-bucket-"));
  const s3 = await startS3({ directory });
  const rig = await openRig({
    args: ["--fetch-workers=1"],
    env: {
      SCRAPER_S3_ENDPOINT: s3.url,
      SCRAPER_S3_BUCKET: s3.bucket,
      SCRAPER_S3_ACCESS_KEY_ID: s3.accessKeyId,
      SCRAPER_S3_SECRET_ACCESS_KEY: s3.secretAccessKey,
      SCRAPER_S3_PREFIX: PREFIX,
      ...env,
    },
  });
  const settings = readEnvironment(rig.stack.pidOf("artifacts"));
  const sql = postgres(settings["SCRAPER_MIGRATION_DATABASE_URL"] ?? "", { max: 1, onnotice: () => undefined });
  return {
    ...rig,
    s3,
    sql,
    async sign(name, auditId) {
      const key = parseBinaryKey(name.slice(PREFIX.length + 1));
      if (key === null) throw new Error(`${name} is no object of ours`);
      const { url: endpoint, bucket, accessKeyId, secretAccessKey, region } = s3;
      const place = { endpoint, bucket, accessKeyId, secretAccessKey, region, prefix: PREFIX };
      const store = createS3Store({ ...place, dialect: "S3", addressing: "PATH" });
      await store.start(new AbortController().signal);
      try {
        const expiresAtMs = Date.now() + 60_000;
        const served = { contentType: "text/plain", disposition: "attachment" };
        return await store.signDownload({ key, auditId, expiresAtMs, ...served });
      } finally {
        await store.stop(0);
      }
    },
    async run(...args) {
      const child = spawn(process.execPath, [BINARY, ...args], { env: settings, stdio: ["ignore", "pipe", "pipe"] });
      const chunks: Buffer[] = [];
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => chunks.push(chunk));
      const [code] = (await once(child, "close")) as [number | null];
      return { code, output: Buffer.concat(chunks).toString() };
    },
    async [Symbol.asyncDispose]() {
      await sql.end();
      await rig[Symbol.asyncDispose]();
      await s3[Symbol.asyncDispose]();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Asks until the answer is not undefined, for 30 s. */
export async function until<T>(what: string, ask: () => Promise<T | undefined> | T | undefined): Promise<T> {
  const deadline = performance.now() + UNTIL_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    if (performance.now() > deadline) throw new Error(`waited ${UNTIL_MS} ms in vain for ${what}`);
    await delay(25);
  }
}

/** Resident memory of a process now and at its highest, in MiB. */
export function residentMiB(pid: number): { readonly now: number; readonly peak: number } {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const read = (name: string): number => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1024;
  return { now: read("VmRSS"), peak: read("VmHWM") };
}

function readEnvironment(pid: number): Record<string, string> {
  const entries = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0").filter(Boolean);
  return Object.fromEntries(
    entries.map((entry) => [entry.slice(0, entry.indexOf("=")), entry.slice(entry.indexOf("=") + 1)]),
  );
}
