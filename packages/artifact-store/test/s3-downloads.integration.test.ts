import { randomBytes } from "node:crypto";
import { Agent, get, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { lookUpLocally } from "@keble-scraper/testkit";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type BinaryKey, createGeneration } from "../src/index.ts";
import { spoolBytes } from "./conformance.ts";
import { type OpenS3, openS3 } from "./open-s3.ts";

const AUDIT = "0190f3a2-7d11-7abc-8def-0123456789ab";

describe.each([
  ["bucket in the path", {}],
  ["bucket in the host", { addressing: "VIRTUAL_HOST" }],
  ["OSS", { dialect: "OSS" }],
] as const)("downloads, %s", (_, options) => {
  let s3: OpenS3;
  let key: BinaryKey;
  let nowMs = Date.now();
  const bytes = randomBytes(5000);
  const agent = new Agent({ lookup: lookUpLocally });

  beforeEach(async () => {
    nowMs = Date.now();
    s3 = await openS3({ ...options, now: () => nowMs });
    const body = await spoolBytes(s3.spool, bytes);
    key = { sha256: body.sha256, generation: createGeneration() };
    await s3.store.put(body, key);
  });
  afterEach(async () => {
    agent.destroy();
    await s3.close();
  });

  async function link(changed: Partial<Parameters<typeof s3.store.signDownload>[0]> = {}): Promise<string> {
    return s3.store.signDownload({
      key,
      auditId: AUDIT,
      expiresAtMs: nowMs + 60_000,
      contentType: "text/html; charset=utf-8",
      disposition: `attachment; filename="it's (1).html"`,
      ...changed,
    });
  }

  async function follow(url: string, headers: Record<string, string> = {}) {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      get(url, { agent, headers }, resolve).once("error", reject);
    });
    return { status: response.statusCode, headers: response.headers, body: await buffer(response) };
  }

  test("A6 a link is signed without a request, and gives the bytes with the type and name it was made for", async () => {
    const before = s3.server.requests().length;
    const url = await link();
    expect(s3.server.requests().length).toBe(before);
    const answer = await follow(url);
    expect(answer.status).toBe(200);
    expect(answer.body.equals(bytes)).toBe(true);
    expect(answer.headers["content-type"]).toBe("text/html; charset=utf-8");
    expect(answer.headers["content-disposition"]).toBe(`attachment; filename="it's (1).html"`);
    const range = await follow(url, { range: "bytes=10-19" });
    expect([range.status, range.body.equals(bytes.subarray(10, 20))]).toEqual([206, true]);
    expect(s3.server.accessLog("S3").filter((line) => line.includes(`x-keble-audit-id=${AUDIT}`)).length).toBe(2);
  });

  test("A6 the audit id is inside the signature: changed, removed, doubled or added to, the link is refused", async () => {
    const url = await link();
    const parameter = `x-keble-audit-id=${AUDIT}`;
    expect(url.split(parameter).length).toBe(2);
    for (const forged of [
      url.replace(parameter, parameter.replace("0190", "0191")),
      url.replace(`&${parameter}`, "").replace(`${parameter}&`, ""),
      url.replace(parameter, `${parameter}&${parameter}`),
      url.replace(parameter, "x-keble-audit-id="),
      `${url}&x-keble-audit-id=other`,
      url.replace("text%2Fhtml", "text%2Fplain"),
      url.replace(key.sha256, "ab".repeat(32)),
    ]) {
      expect(forged).not.toBe(url);
      expect((await follow(forged)).status).toBe(403);
    }
    expect((await follow(url)).status).toBe(200);
  });

  test("A6 two links carry two audit ids, whatever was signed between them", async () => {
    const urls = await Promise.all(["audit-1", "audit-2", "audit-3"].map(async (auditId) => link({ auditId })));
    for (const [index, url] of urls.entries()) {
      expect(new URL(url).searchParams.getAll("x-keble-audit-id")).toEqual([`audit-${String(index + 1)}`]);
      expect((await follow(url)).status).toBe(200);
    }
  });

  test("a link ends when it says, never later, and holds no secret", async () => {
    const expiresAtMs = nowMs + 5999;
    const url = await link({ expiresAtMs });
    const { searchParams } = new URL(url);
    const signedAt = searchParams
      .get("X-Amz-Date")!
      .replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, "$1-$2-$3T$4:$5:$6Z");
    const endsAtMs = Date.parse(signedAt) + Number(searchParams.get("X-Amz-Expires")) * 1000;
    expect(endsAtMs).toBe(Math.floor(expiresAtMs / 1000) * 1000);
    expect(url).not.toContain(encodeURIComponent(s3.settings.secretAccessKey));
    expect((await follow(url)).status).toBe(200);
    nowMs += 6000;
    expect((await follow(url)).status).toBe(403);
  });

  test("a link that can't be is a fault: over already, too long, with a line feed", async () => {
    await expect(link({ expiresAtMs: nowMs - 1 })).rejects.toThrow("not a time");
    await expect(link({ expiresAtMs: nowMs + 604_802_000 })).rejects.toThrow("not a time");
    await expect(link({ contentType: "text/html\nx: y" })).rejects.toThrow("not text");
    await expect(link({ key: { ...key, generation: "../x" } })).rejects.toThrow("not a binary key");
  });
});
