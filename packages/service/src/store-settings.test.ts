import { expect, test } from "vitest";
import { type Env, faultyNames, parse, PRODUCTION, REQUIRED, S3, S3_NAMES } from "../test/test-env.ts";
import type { SettingName } from "./setting-table.ts";
import { parseSettings, renderSettingsFaults } from "./settings.ts";

test("A5 the owner is required in staging and production, and derived elsewhere", () => {
  const name: SettingName = "SCRAPER_ARTIFACT_NAMESPACE_OWNER";
  expect(faultyNames({ SCRAPER_ENVIRONMENT: "production" })).toContain(name);
  expect(faultyNames({ SCRAPER_ENVIRONMENT: "staging" })).toContain(name);
  expect(parse().artifacts.namespaceOwner).toBe("test/scraper");
});

test("A5 the local store's two settings are a pair, loopback, for development and test only", () => {
  const directory: SettingName = "SCRAPER_LOCAL_ARTIFACT_DIRECTORY";
  const baseUrl: SettingName = "SCRAPER_LOCAL_ARTIFACT_BASE_URL";
  expect(faultyNames({ [directory]: "/data" })).toEqual([baseUrl]);
  expect(faultyNames({ [baseUrl]: "http://127.0.0.1:9000" })).toEqual([directory]);
  expect(faultyNames({ [directory]: "/data", [baseUrl]: "http://example.com" })).toEqual([baseUrl]);
  expect(faultyNames({ ...PRODUCTION, [directory]: "/data", [baseUrl]: "http://127.0.0.1:9000" })).toEqual([
    directory,
    baseUrl,
  ]);
  expect(parse({ [directory]: "/data", [baseUrl]: "http://127.0.0.1:9000/" }).artifacts.store).toEqual({
    kind: "LOCAL",
    directory: "/data",
    baseUrl: "http://127.0.0.1:9000",
  });
});

test("A5 staging and production have S3 or nothing", () => {
  for (const environment of ["staging", "production"]) {
    const deployed = { ...PRODUCTION, SCRAPER_ENVIRONMENT: environment };
    const blank = Object.fromEntries(S3_NAMES.map((name) => [name, " \t"]));
    expect(faultyNames(deployed)).toEqual([]);
    expect(faultyNames({ ...deployed, ...blank })).toEqual(["SCRAPER_S3_ENDPOINT"]);
    expect(parse({ ...deployed, SCRAPER_S3_PREFIX: "live/a" }).artifacts.store).toEqual({
      kind: "S3",
      endpoint: S3.SCRAPER_S3_ENDPOINT,
      bucket: S3.SCRAPER_S3_BUCKET,
      accessKeyId: S3.SCRAPER_S3_ACCESS_KEY_ID,
      secretAccessKey: S3.SCRAPER_S3_SECRET_ACCESS_KEY,
      prefix: "live/a",
      region: "us-east-1",
      dialect: "S3",
      addressing: "VIRTUAL_HOST",
    });
  }
});

test("A5 the S3 tuple is all four or none, a blank is absent, and each missing one is named", () => {
  const subsets = Array.from({ length: 16 }, (_, bits) => S3_NAMES.filter((_name, at) => (bits & (1 << at)) !== 0));
  for (const given of subsets) {
    const env: Env = Object.fromEntries(S3_NAMES.map((name) => [name, given.includes(name) ? S3[name] : "  "]));
    const missing = given.length === 0 ? [] : S3_NAMES.filter((name) => !given.includes(name));
    expect(faultyNames(env), given.join()).toEqual(missing);
    expect(faultyNames({ ...PRODUCTION, ...env }), given.join()).toEqual(
      given.length === 0 ? ["SCRAPER_S3_ENDPOINT"] : missing,
    );
  }
  expect(parse().artifacts.store.kind).toBe("LOCAL");
  expect(parse(S3).artifacts.store.kind).toBe("S3");
  const parsed = parseSettings({ ...REQUIRED, ...S3, SCRAPER_S3_BUCKET: undefined });
  expect(parsed.ok ? "" : renderSettingsFaults(parsed.faults)).not.toContain("canary");
});

test("A5 a second store beside S3 is refused, and so is a path in its endpoint", () => {
  const directory: SettingName = "SCRAPER_LOCAL_ARTIFACT_DIRECTORY";
  const baseUrl: SettingName = "SCRAPER_LOCAL_ARTIFACT_BASE_URL";
  expect(faultyNames({ ...S3, [directory]: "/data", [baseUrl]: "http://127.0.0.1:9000" })).toEqual([
    directory,
    baseUrl,
  ]);
  expect(faultyNames({ SCRAPER_S3_BUCKET: "b-1", [directory]: "/data" })).toContain(directory);
  for (const endpoint of ["https://s3.example/bucket", "https://s3.example/bucket/", "https://s3.example/?x=1"]) {
    expect(faultyNames({ ...S3, SCRAPER_S3_ENDPOINT: endpoint }), endpoint).toEqual(["SCRAPER_S3_ENDPOINT"]);
  }
  expect(faultyNames({ ...S3, SCRAPER_S3_ENDPOINT: "https://s3.example/" })).toEqual([]);
});

test.each([
  ["https://oss-cn-hangzhou.aliyuncs.com", "auto", "auto", "OSS", "VIRTUAL_HOST"],
  ["https://aliyuncs.com", "auto", "auto", "OSS", "VIRTUAL_HOST"],
  ["https://notaliyuncs.com", "auto", "auto", "S3", "VIRTUAL_HOST"],
  ["https://aliyuncs.com.example.org", "auto", "auto", "S3", "VIRTUAL_HOST"],
  ["https://oss.aliyuncs.com", "s3", "auto", "S3", "VIRTUAL_HOST"],
  ["https://oss.aliyuncs.com", "s3", "path", "S3", "PATH"],
  ["https://s3.example.com", "oss", "auto", "OSS", "VIRTUAL_HOST"],
  ["http://127.0.0.1:9000", "oss", "auto", "OSS", "PATH"],
  ["http://127.0.0.1:9000", "auto", "auto", "S3", "PATH"],
  ["http://[::1]:9000", "auto", "auto", "S3", "PATH"],
  ["http://localhost:9000", "auto", "auto", "S3", "PATH"],
  ["http://s3.localhost:9000", "auto", "auto", "S3", "PATH"],
  ["http://minio:9000", "auto", "auto", "S3", "PATH"],
  ["http://minio:9000", "auto", "virtual-host", "S3", "VIRTUAL_HOST"],
  ["https://s3.example.com", "auto", "path", "S3", "PATH"],
])("A5 how a store is spoken to: %s with dialect %s and addressing %s", (endpoint, dialect, addressing, ...want) => {
  const env = { SCRAPER_S3_ENDPOINT: endpoint, SCRAPER_S3_DIALECT: dialect, SCRAPER_S3_ADDRESSING: addressing };
  expect(parse({ ...S3, ...env }).artifacts.store).toMatchObject({ endpoint, dialect: want[0], addressing: want[1] });
});

test("A5 OSS takes no bucket in the path", () => {
  const path = { ...S3, SCRAPER_S3_ADDRESSING: "path" };
  expect(faultyNames({ ...path, SCRAPER_S3_DIALECT: "oss" })).toEqual(["SCRAPER_S3_ADDRESSING"]);
  expect(faultyNames({ ...path, SCRAPER_S3_ENDPOINT: "https://oss.aliyuncs.com" })).toEqual(["SCRAPER_S3_ADDRESSING"]);
  expect(faultyNames(path)).toEqual([]);
});
