import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lookUpLocally, type S3Options, type S3Server, startS3 } from "@keble-scraper/testkit";
import { createS3Store, createSpool, type S3Settings, type S3Store, type Spool } from "../src/index.ts";
import type { S3Tuning } from "../src/s3/s3-settings.ts";

/** A stand-in for the service, a store in front of it, and a spool. */
export type OpenS3 = {
  readonly server: S3Server;
  readonly settings: S3Settings;
  readonly store: S3Store;
  readonly spool: Spool;
  readonly directory: string;
  /** Another store on the same server, started; closed with the first. */
  another(settings: Partial<S3Settings>, tuning?: Partial<S3Tuning>): Promise<S3Store>;
  close(): Promise<void>;
};

const never = new AbortController().signal;

/** Starts all of it. `addressing` and `dialect` are both sides'. */
export async function openS3(
  options: S3Options & { readonly addressing?: S3Settings["addressing"]; readonly tuning?: Partial<S3Tuning> } = {},
): Promise<OpenS3> {
  const directory = await mkdtemp(join(tmpdir(), "keble-s3-"));
  const server = await startS3(options);
  const addressing = options.dialect === "OSS" ? "VIRTUAL_HOST" : (options.addressing ?? "PATH");
  const settings: S3Settings = {
    endpoint: addressing === "PATH" ? server.url : server.virtualHostUrl,
    bucket: server.bucket,
    accessKeyId: server.accessKeyId,
    secretAccessKey: server.secretAccessKey,
    prefix: "kept/artifacts",
    region: server.region,
    dialect: options.dialect ?? "S3",
    addressing,
  };
  const spool = createSpool({ directory: join(directory, "spool") });
  const stores: S3Store[] = [];
  async function another(changed: Partial<S3Settings>, tuning: Partial<S3Tuning> = {}): Promise<S3Store> {
    const store = createS3Store({ ...settings, ...changed }, { lookup: lookUpLocally, ...options.tuning, ...tuning });
    stores.push(store);
    await store.start(never);
    return store;
  }
  await spool.start(never);
  const store = await another({});
  return {
    server,
    settings,
    store,
    spool,
    directory,
    another,
    async close() {
      for (const each of stores) await each.stop(0);
      await spool.stop(0);
      await server[Symbol.asyncDispose]();
      await rm(directory, { recursive: true });
    },
  };
}
