import { createHash, randomBytes } from "node:crypto";
import { readdir, readlink, truncate } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { deriveDownloadKey, StoreUnavailable } from "@keble-scraper/artifact-store";
import { ErrorEnvelope } from "@keble-scraper/contract";
import { SYSTEM_CLOCK } from "@keble-scraper/service";
import { expect, test } from "vitest";
import { createDownloadServer } from "../src/downloads/download-server.ts";
import { type Asked, ask, captureLog, open, openServing } from "./serving.ts";

const TEXT = Buffer.from("0123456789");

function errorOf(asked: Asked): { code: string; requestId: string } {
  expect(asked.headers["content-type"]).toBe("application/json");
  return ErrorEnvelope.parse(JSON.parse(asked.body.toString())).error;
}

test("A6 a signed link gives the bytes, as an attachment that no browser runs", async () => {
  await using serving = await openServing();
  const key = await serving.put(TEXT);
  const asked = await serving.ask(serving.target(key), { headers: { "x-request-id": "mine-1" } });
  expect(asked.status).toBe(200);
  expect(asked.body.equals(TEXT)).toBe(true);
  expect(asked.headers).toMatchObject({
    "accept-ranges": "bytes",
    "cache-control": expect.stringMatching(/^private, max-age=(59|60), immutable$/) as string,
    "content-disposition": "attachment; filename=a.txt",
    "content-length": "10",
    "content-security-policy": "sandbox; default-src 'none'",
    "content-type": "text/plain",
    "cross-origin-resource-policy": "same-site",
    etag: `"${key.sha256}"`,
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-request-id": "mine-1",
  });
  const line = await serving.log.line("download.served");
  expect(line).toMatchObject({ auditId: expect.any(String) as string, ...key, sent: TEXT.byteLength });
  expect(JSON.stringify(serving.log.lines)).not.toContain("x-keble-signature");
});

test("HEAD answers as GET does, without the bytes", async () => {
  await using serving = await openServing();
  const target = serving.target(await serving.put(TEXT));
  const [get, head] = [await serving.ask(target), await serving.ask(target, { method: "HEAD" })];
  const { date: _get, ...getHeaders } = get.headers;
  const { date: _head, ...headHeaders } = head.headers;
  expect({ ...headHeaders, "x-request-id": "", "cache-control": "" }).toEqual({
    ...getHeaders,
    "x-request-id": "",
    "cache-control": "",
  });
  expect(head.body.byteLength).toBe(0);
  const ranged = await serving.ask(target, { method: "HEAD", headers: { range: "bytes=0-0" } });
  expect(ranged).toMatchObject({ status: 200, headers: { "content-length": "10" } });
});

test("the base URL's path is part of every link", async () => {
  await using serving = await openServing("/files/");
  const key = await serving.put(TEXT);
  const target = serving.target(key);
  expect(target.startsWith(`/files/${key.sha256}/`)).toBe(true);
  expect((await serving.ask(target)).status).toBe(200);
  expect((await serving.ask(target.replace("/files", ""))).status).toBe(404);
});

// The link is the only key to the bytes, and its audit id the only way to tell who used it.
test.each(["x-keble-audit-id", "x-keble-expires", "x-keble-content-type", "x-keble-disposition", "x-keble-signature"])(
  "A6 a link whose %s is changed, removed or doubled is refused",
  async (name) => {
    await using serving = await openServing();
    const target = serving.target(await serving.put(TEXT));
    const [path = "", query = ""] = target.split("?");
    const parts = query.split("&");
    const index = parts.findIndex((part) => part.startsWith(`${name}=`));
    const part = parts[index]!;
    const tampered = [
      parts.with(index, part.slice(0, -1) + (part.endsWith("1") ? "2" : "1")),
      parts.with(index, `${name}=`),
      parts.toSpliced(index, 1),
      [...parts, part],
      [part, ...parts],
      [...parts, `${name}=x`],
      [`${name}=x`, ...parts],
    ];
    for (const changed of tampered) {
      const asked = await serving.ask(`${path}?${changed.join("&")}`);
      expect(asked.status).toBe(403);
      expect(errorOf(asked).code).toBe("FORBIDDEN");
      expect(asked.headers["cache-control"]).toBe("no-store");
    }
    expect((await serving.ask(target)).status).toBe(200);
  },
);

test("A6 a link of one object opens no other, and none of another deployment", async () => {
  await using serving = await openServing();
  const [one, two] = [await serving.put(TEXT), await serving.put(Buffer.from("two"))];
  const target = serving.target(one);
  const other = target.replace(one.sha256, two.sha256).replace(one.generation, two.generation);
  expect((await serving.ask(other)).status).toBe(403);
  expect((await serving.ask(target.split("?")[0]!)).status).toBe(403);
  const foreign = createDownloadServer({
    baseUrl: "http://127.0.0.1:0",
    signingKey: deriveDownloadKey("another secret"),
    store: serving.store,
    clock: SYSTEM_CLOCK,
    logger: captureLog().logger,
  });
  await foreign.start(new AbortController().signal);
  expect((await ask(foreign.url, target)).status).toBe(403);
  await foreign.stop(performance.now());
});

test("an expired link is refused, with the same answer as a forged one", async () => {
  await using serving = await openServing();
  const target = serving.target(await serving.put(TEXT));
  serving.time.offsetMs = 60_001;
  const expired = await serving.ask(target, { headers: { "x-request-id": "r" } });
  const forged = await serving.ask(`${target}0`, { headers: { "x-request-id": "r" } });
  expect(expired.status).toBe(403);
  expect(expired.body.toString()).toBe(forged.body.toString());
});

test("bytes that are deleted after the link was signed answer 410", async () => {
  await using serving = await openServing();
  const key = await serving.put(TEXT);
  const target = serving.target(key);
  await serving.store.delete(key);
  const asked = await serving.ask(target);
  expect(asked.status).toBe(410);
  expect(errorOf(asked).code).toBe("GONE");
  expect(await serving.log.line("download.gone")).toMatchObject({ sha256: key.sha256 });
});

test.each([
  ["/", 404],
  ["/favicon.ico", 404],
  ["/../../etc/passwd", 404],
  ["//etc/passwd", 404],
  [`/${"ab".repeat(32)}`, 404],
  [`/${"ab".repeat(32)}/..%2f..%2f..%2f..%2fetc`, 404],
  [`/${"AB".repeat(32)}/0123456789abcdef`, 404],
  [`/x/${"ab".repeat(32)}/0123456789abcdef`, 404],
  [`/${"ab".repeat(32)}/0123456789abcdef/`, 404],
  [`/${"ab".repeat(32)}/0123456789abcdef`, 403],
])("A5 without a signature, %s answers %i in the envelope", async (target, status) => {
  await using serving = await openServing();
  const asked = await serving.ask(target);
  expect(asked.status).toBe(status);
  expect(errorOf(asked).requestId).toBe(asked.headers["x-request-id"]);
  expect(asked.headers["content-security-policy"]).toBe("sandbox; default-src 'none'");
  expect(asked.headers["x-content-type-options"]).toBe("nosniff");
});

test.each(["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])("%s answers 405 and says what is allowed", async (method) => {
  await using serving = await openServing();
  const asked = await serving.ask(serving.target(await serving.put(TEXT)), { method });
  expect(asked.status).toBe(405);
  expect(asked.headers.allow).toBe("GET, HEAD");
  expect(errorOf(asked).code).toBe("METHOD_NOT_ALLOWED");
});

test.each([
  ["bytes=0-3", 206, "0123", "bytes 0-3/10"],
  ["bytes=4-", 206, "456789", "bytes 4-9/10"],
  ["bytes=-3", 206, "789", "bytes 7-9/10"],
  ["bytes=9-99", 206, "9", "bytes 9-9/10"],
  ["bytes=10-", 416, "", "bytes */10"],
  ["bytes=-0", 416, "", "bytes */10"],
  ["bytes=5-4", 200, "0123456789", undefined],
  ["bytes=0-1,3-4", 200, "0123456789", undefined],
  ["nonsense", 200, "0123456789", undefined],
])("the range %s answers %i", async (range, status, body, contentRange) => {
  await using serving = await openServing();
  const target = serving.target(await serving.put(TEXT));
  const asked = await serving.ask(target, { headers: { range } });
  expect(asked.status).toBe(status);
  expect(asked.body.toString()).toBe(body);
  expect(asked.headers["content-range"]).toBe(contentRange);
  expect(asked.headers["content-length"]).toBe(String(body.length));
});

test("a range counts only while If-Range names these bytes, strongly", async () => {
  await using serving = await openServing();
  const key = await serving.put(TEXT);
  const target = serving.target(key);
  const statusOf = async (ifRange: string): Promise<number> =>
    (await serving.ask(target, { headers: { range: "bytes=0-3", "if-range": ifRange } })).status;
  expect(await statusOf(`"${key.sha256}"`)).toBe(206);
  expect(await statusOf(`W/"${key.sha256}"`)).toBe(200);
  expect(await statusOf('"other"')).toBe(200);
  expect(await statusOf(new Date().toUTCString())).toBe(200);
});

test("known bytes are not sent again, and other bytes than expected not at all", async () => {
  await using serving = await openServing();
  const key = await serving.put(TEXT);
  const target = serving.target(key);
  const known = await serving.ask(target, { headers: { "if-none-match": `W/"x", "${key.sha256}"` } });
  expect(known).toMatchObject({ status: 304, headers: { etag: `"${key.sha256}"` } });
  expect(known.body.byteLength).toBe(0);
  expect((await serving.ask(target, { headers: { "if-none-match": '"x"' } })).status).toBe(200);
  expect((await serving.ask(target, { headers: { "if-match": '"x"' } })).status).toBe(412);
  expect((await serving.ask(target, { headers: { "if-match": `"${key.sha256}"` } })).status).toBe(200);
});

test("an artifact of no bytes is served, and no range of it", async () => {
  await using serving = await openServing();
  const target = serving.target(await serving.put(Buffer.alloc(0)));
  expect(await serving.ask(target)).toMatchObject({ status: 200, headers: { "content-length": "0" } });
  expect((await serving.ask(target, { headers: { range: "bytes=0-0" } })).status).toBe(416);
});

test("64 MiB stream through with flat memory", async () => {
  await using serving = await openServing();
  const bytes = randomBytes(64 * 1024 * 1024);
  const key = await serving.put(bytes);
  const hash = createHash("sha256");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const held = (): number => {
    collect();
    return process.memoryUsage().arrayBuffers;
  };
  const before = held();
  let received = 0;
  let peak = 0;
  for await (const chunk of (await open(serving.server.url, serving.target(key))) as AsyncIterable<Buffer>) {
    hash.update(chunk);
    const step = Math.floor(received / 4_194_304);
    received += chunk.byteLength;
    if (Math.floor(received / 4_194_304) > step) peak = Math.max(peak, held() - before);
  }
  expect(received).toBe(bytes.byteLength);
  expect(hash.digest("hex")).toBe(key.sha256);
  // Both ends are in this process, with what is on its way between them; 13 MiB were seen.
  expect(peak).toBeLessThan(32 * 1024 * 1024);
});

async function openFiles(directory: string): Promise<number> {
  const descriptors = await readdir("/proc/self/fd");
  const paths = await Promise.all(descriptors.map(async (fd) => readlink(`/proc/self/fd/${fd}`).catch(() => "")));
  return paths.filter((path) => path.startsWith(directory)).length;
}

test.runIf(process.platform === "linux")("a client that leaves half way leaves no file open", async () => {
  await using serving = await openServing();
  const key = await serving.put(randomBytes(32 * 1024 * 1024));
  const response = await open(serving.server.url, serving.target(key));
  expect(await openFiles(serving.directory)).toBe(1);
  response.destroy();
  expect(await serving.log.line("download.cut")).toMatchObject({ length: 32 * 1024 * 1024 });
  await expect.poll(async () => openFiles(serving.directory)).toBe(0);
  const other = await open(serving.server.url, serving.target(key), { method: "HEAD" });
  expect(other.statusCode).toBe(200);
});

test("a file that gets shorter while it is served cuts the connection instead of ending the answer", async () => {
  await using serving = await openServing();
  const key = await serving.put(randomBytes(32 * 1024 * 1024));
  // On a connection that is kept, a client would wait for the rest for ever.
  const headers = { connection: "keep-alive" };
  const response = await open(serving.server.url, serving.target(key), { headers });
  const path = join(serving.directory, "store/artifacts", key.sha256.slice(0, 2), `${key.sha256}.${key.generation}`);
  await truncate(path, 100);
  const outcome = (async () => {
    for await (const _ of response);
  })();
  await expect(outcome).rejects.toThrow("aborted");
  expect(await serving.log.line("download.cut")).toMatchObject({ length: 32 * 1024 * 1024 });
});

test.each([
  ["StoreUnavailable", new StoreUnavailable("EIO"), 503, "DEPENDENCY_UNAVAILABLE"],
  ["a bug", new Error("secret path /etc"), 500, "INTERNAL"],
])("%s answers %s in the envelope and tells nothing of its cause", async (_, fault, status, code) => {
  await using serving = await openServing();
  const key = await serving.put(TEXT);
  const broken = createDownloadServer({
    baseUrl: "http://127.0.0.1:0",
    signingKey: deriveDownloadKey("secret"),
    store: { head: async () => Promise.reject(fault), read: async () => Promise.reject(fault) },
    clock: SYSTEM_CLOCK,
    logger: captureLog().logger,
  });
  await broken.start(new AbortController().signal);
  const asked = await ask(broken.url, serving.target(key));
  expect(asked.status).toBe(status);
  expect(errorOf(asked).code).toBe(code);
  expect(asked.headers["retry-after"]).toBe(status === 503 ? "5" : undefined);
  expect(asked.body.toString()).not.toContain("/etc");
  await broken.stop(performance.now());
});

test("stop lets a download in flight end, and cuts one that outlasts the deadline", async () => {
  const serving = await openServing();
  const bytes = randomBytes(8 * 1024 * 1024);
  const target = serving.target(await serving.put(bytes));
  const response = await open(serving.server.url, target);
  const stopped = serving.server.stop(performance.now() + 20_000);
  let received = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) received += chunk.byteLength;
  expect(received).toBe(bytes.byteLength);
  await stopped;
  await serving[Symbol.asyncDispose]();

  await using slow = await openServing();
  const held = await open(slow.server.url, slow.target(await slow.put(bytes)));
  await slow.server.stop(performance.now());
  await expect(
    (async () => {
      for await (const _ of held);
    })(),
  ).rejects.toThrow("aborted");
});

test("A5 the server binds to loopback alone, and refuses a base URL anywhere else", async () => {
  for (const baseUrl of [
    "http://0.0.0.0:0",
    "http://192.168.1.1:0",
    "http://files.example.com",
    "https://127.0.0.1:0",
    "http://127.0.0.1.example.com:0",
    "http://169.254.169.254:0",
  ]) {
    expect(() =>
      createDownloadServer({
        baseUrl,
        signingKey: deriveDownloadKey("secret"),
        store: { head: async () => Promise.resolve(null), read: async () => Promise.resolve(null) },
        clock: SYSTEM_CLOCK,
        logger: captureLog().logger,
      }),
    ).toThrow("loopback");
  }
});

test("a request that is no HTTP does not end the server", async () => {
  await using serving = await openServing();
  const socket = connect(Number(new URL(serving.server.url).port), "127.0.0.1");
  socket.end("\u0000\u0001 nonsense\r\n\r\n");
  await new Promise((resolve) => socket.once("close", resolve).resume());
  expect((await serving.ask(serving.target(await serving.put(TEXT)))).status).toBe(200);
});
