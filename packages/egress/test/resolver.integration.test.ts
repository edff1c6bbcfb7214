import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { createResolver, vetAddresses } from "@keble-scraper/egress";
import { openDnsServer } from "./dns-server.ts";

const PUBLIC = "93.184.216.34";
const PUBLIC_6 = "2606:2800:220:1:248:1893:25c8:1946";
const never = new AbortController().signal;

/** UDP sockets of this machine that are connected to the server; always 0 where there is no /proc. */
async function countSocketsTo(server: string): Promise<number> {
  if (process.platform !== "linux") return 0;
  const peer = `0100007F:${Number(server.split(":")[1]).toString(16).toUpperCase().padStart(4, "0")}`;
  const rows = (await readFile("/proc/net/udp", "utf8")).split("\n").map((row) => row.trim().split(/\s+/));
  return rows.filter((columns) => columns[2] === peer).length;
}

test("D1 one A and one AAAA question per resolve, and without a TTL nothing is remembered", async () => {
  await using dns = await openDnsServer({
    "A rebind.example.com": (earlier) => ({ answers: [earlier === 0 ? PUBLIC : "127.0.0.1"] }),
    "AAAA rebind.example.com": { answers: [] },
  });
  const resolver = createResolver({ servers: [dns.server] });
  expect(await resolver.resolve("rebind.example.com", { signal: never })).toEqual({ ok: true, addresses: [PUBLIC] });
  expect(dns.questions.toSorted()).toEqual(["A rebind.example.com", "AAAA rebind.example.com"]);
  const second = await resolver.resolve("rebind.example.com", { signal: never });
  expect(second).toEqual({ ok: true, addresses: ["127.0.0.1"] });
  expect(dns.questions).toHaveLength(4);
});

test("W6 an answer is remembered for its TTL, the smallest of its chain, and questions are shared", async () => {
  await using dns = await openDnsServer({
    "A kept.example.com": { answers: [PUBLIC], ttl: 300 },
    "AAAA kept.example.com": { answers: [PUBLIC_6], ttl: 30 },
    "A alias.example.com": { answers: [PUBLIC], cname: "edge.example.net", ttl: 300, cnameTtl: 7 },
    "AAAA alias.example.com": { answers: [] },
  });
  const resolver = createResolver({ servers: [dns.server] });
  const outcomes = await Promise.all(
    Array.from({ length: 10 }, () => resolver.resolve("kept.example.com", { signal: never })),
  );
  for (const outcome of outcomes) {
    expect(outcome).toEqual({ ok: true, addresses: [PUBLIC, PUBLIC_6], ttlMs: 30_000 });
  }
  await resolver.resolve("kept.example.com", { signal: never });
  expect(dns.questions).toHaveLength(2);
  expect(await resolver.resolve("alias.example.com", { signal: never })).toMatchObject({ ok: true, ttlMs: 7_000 });
});

test("W6 an answer of one second is asked for again after it", async () => {
  await using dns = await openDnsServer({
    "A brief.example.com": (earlier) => ({ answers: [earlier === 0 ? PUBLIC : "127.0.0.1"], ttl: 1 }),
    "AAAA brief.example.com": { answers: [] },
  });
  const resolver = createResolver({ servers: [dns.server] });
  const addresses = async () => {
    const outcome = await resolver.resolve("brief.example.com", { signal: never });
    return outcome.ok ? outcome.addresses : [];
  };
  expect(await addresses()).toEqual([PUBLIC]);
  expect(await addresses()).toEqual([PUBLIC]);
  await expect.poll(addresses, { interval: 100, timeout: 3_000 }).toEqual(["127.0.0.1"]);
});

test.each([
  ["D2", { answers: [PUBLIC, "10.0.0.5"] }, { answers: [] }],
  ["D2", { answers: ["10.0.0.5", PUBLIC] }, { answers: [] }],
  ["D3", { answers: [PUBLIC] }, { answers: ["fd00::1"] }],
  ["D3", { answers: ["10.0.0.5"] }, { answers: [PUBLIC_6] }],
  ["D4", { answers: [] }, { answers: ["::ffff:10.0.0.1"] }],
  ["D4", { answers: [] }, { answers: ["::7f00:1"] }],
  ["D4", { answers: [] }, { answers: ["64:ff9b::a00:1"] }],
])("%s a name with a non-public answer is refused: %j %j", async (_row, a, aaaa) => {
  await using dns = await openDnsServer({ "A mixed.example.com": a, "AAAA mixed.example.com": aaaa });
  const outcome = await createResolver({ servers: [dns.server] }).resolve("mixed.example.com", { signal: never });
  expect(outcome).toMatchObject({ ok: true });
  expect(vetAddresses(outcome.ok ? outcome.addresses : [])).toMatchObject({ ok: false, reason: "address" });
});

test.each([
  ["NXDOMAIN", "NXDOMAIN", "dns_not_found"],
  [{ answers: [] }, { answers: [] }, "dns_no_address"],
  ["SERVFAIL", "SERVFAIL", "dns_servfail"],
  ["REFUSED", "REFUSED", "dns_servfail"],
  ["SERVFAIL", { answers: [] }, "dns_servfail"],
  ["SILENT", "SILENT", "dns_timeout"],
  ["SILENT", { answers: [] }, "dns_timeout"],
] as const)("D5 A %j and AAAA %j end as %s", async (a, aaaa, kind) => {
  await using dns = await openDnsServer({ "A down.example.com": a, "AAAA down.example.com": aaaa });
  const resolver = createResolver({ servers: [dns.server], timeoutMs: 300 });
  const startedAt = performance.now();
  expect(await resolver.resolve("down.example.com", { signal: never })).toMatchObject({ ok: false, kind });
  // The default would be 2 s.
  expect(performance.now() - startedAt).toBeLessThan(1_800);
});

test.each([
  ["SERVFAIL", { answers: [PUBLIC_6] }, [PUBLIC_6]],
  [{ answers: [PUBLIC] }, "SERVFAIL", [PUBLIC]],
  ["NXDOMAIN", { answers: [PUBLIC_6] }, [PUBLIC_6]],
  [{ answers: [PUBLIC] }, "SILENT", [PUBLIC]],
  ["SILENT", { answers: [PUBLIC_6] }, [PUBLIC_6]],
  [{ answers: [PUBLIC] }, { answers: [PUBLIC_6] }, [PUBLIC, PUBLIC_6]],
] as const)("D6 A %j beside AAAA %j is a success", async (a, aaaa, addresses) => {
  await using dns = await openDnsServer({ "A half.example.com": a, "AAAA half.example.com": aaaa });
  const resolver = createResolver({ servers: [dns.server], timeoutMs: 300 });
  expect(await resolver.resolve("half.example.com", { signal: never })).toEqual({ ok: true, addresses });
});

test("D7 an alias to an internal name with a public address is a success", async () => {
  await using dns = await openDnsServer({
    "A alias.example.com": { answers: [PUBLIC], cname: "db.prod.internal" },
    "AAAA alias.example.com": { answers: [], cname: "db.prod.internal" },
  });
  const resolver = createResolver({ servers: [dns.server] });
  expect(await resolver.resolve("alias.example.com", { signal: never })).toEqual({ ok: true, addresses: [PUBLIC] });
});

test("D8 all of 500 answers come back, so that all are vetted", async () => {
  const answers = Array.from({ length: 500 }, (_, index) => `93.184.${Math.floor(index / 250)}.${index % 250}`);
  await using dns = await openDnsServer({
    "A many.example.com": { answers: [...answers, "127.0.0.1"] },
    "AAAA many.example.com": { answers: [] },
  });
  const outcome = await createResolver({ servers: [dns.server] }).resolve("many.example.com", { signal: never });
  expect(outcome.ok && outcome.addresses.length).toBe(501);
  expect(vetAddresses(outcome.ok ? outcome.addresses : [])).toMatchObject({ ok: false, reason: "address" });
});

test("W6 an abort ends the wait at once and leaves no question open", async () => {
  await using dns = await openDnsServer({ "A slow.example.com": "SILENT", "AAAA slow.example.com": "SILENT" });
  const resolver = createResolver({ servers: [dns.server], timeoutMs: 20_000 });
  const caller = new AbortController();
  const pending = resolver.resolve("slow.example.com", { signal: caller.signal });
  await dns.asked("AAAA slow.example.com");
  expect(await countSocketsTo(dns.server)).toBe(process.platform === "linux" ? 1 : 0);
  const reason = new Error("deadline");
  caller.abort(reason);
  await expect(pending).rejects.toBe(reason);
  expect(await countSocketsTo(dns.server)).toBe(0);
  await expect(resolver.resolve("slow.example.com", { signal: caller.signal })).rejects.toBe(reason);
  expect(dns.questions).toHaveLength(2);
});

test("W7 listed names come from the system, all others never do", async () => {
  await using dns = await openDnsServer({});
  const resolver = createResolver({ servers: [dns.server], systemNames: new Set(["localhost"]) });
  const listed = await resolver.resolve("localhost", { signal: never });
  expect(listed.ok && listed.addresses).toContain("127.0.0.1");
  expect(dns.questions).toEqual([]);
  const unlisted = createResolver({ servers: [dns.server] });
  expect(await unlisted.resolve("localhost", { signal: never })).toMatchObject({ ok: false, kind: "dns_not_found" });
  expect(await unlisted.resolve("my_bucket.example.com", { signal: never })).toMatchObject({ kind: "dns_not_found" });
  expect(dns.questions).toContain("A my_bucket.example.com");
});
