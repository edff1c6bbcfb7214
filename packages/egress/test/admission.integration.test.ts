import { createGate, page, redirect, stall, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import type { AdmitHop, Hop, HopVerdict } from "../src/index.ts";
import { createRig } from "./rig.ts";

const URL_A = "http://origin.example.com/a";
const WAIT = { kind: "WAIT", wait: { horizonMs: 9_000, dueMs: 4_000 } } as const;
const RESPECT = { robots: "RESPECT" } as const;

type Asked = Pick<Hop, "purpose" | "isFirst" | "crawlDelayMs"> & { readonly href: string };

/** An admission that lists what it was asked, in order, and counts the ends of what it let go. */
function createAdmission(
  decide: (hop: Hop, earlier: number) => "GO" | Exclude<HopVerdict, { kind: "GO" }> = () => "GO",
) {
  const asked: Asked[] = [];
  const done: string[] = [];
  const admit: AdmitHop = (hop) => {
    const { url, purpose, isFirst, crawlDelayMs } = hop;
    const verdict = decide(hop, asked.length);
    asked.push({ href: url.href, purpose, isFirst, crawlDelayMs });
    return Promise.resolve(verdict === "GO" ? { kind: "GO", done: () => void done.push(url.href) } : verdict);
  };
  return { admit, asked, done };
}

describe("admission", () => {
  it("W2 every request asks first: the page, each redirect, and each robots.txt with its own redirects", async () => {
    await using origin = await startOrigin({
      paths: {
        "/robots.txt": (reply) =>
          reply.request.headers["host"] === "other.example.com"
            ? redirect("http://other.example.com/rules")(reply)
            : page("User-agent: *\nCrawl-delay: 1.5")(reply),
        "/rules": page("User-agent: *\nCrawl-delay: 4"),
        "/a": redirect("/b"),
        "/b": redirect("http://other.example.com/c"),
        "/c": page("c"),
      },
    });
    const { admit, asked, done } = createAdmission();
    await using rig = createRig(origin, { admit });
    expect((await rig.get(URL_A, RESPECT)).outcome.ok).toBe(true);
    expect(asked).toEqual([
      { href: "http://origin.example.com/robots.txt", purpose: "ROBOTS", isFirst: true, crawlDelayMs: null },
      { href: "http://origin.example.com/a", purpose: "PAGE", isFirst: true, crawlDelayMs: 1_500 },
      { href: "http://origin.example.com/b", purpose: "PAGE", isFirst: false, crawlDelayMs: 1_500 },
      { href: "http://other.example.com/robots.txt", purpose: "ROBOTS", isFirst: false, crawlDelayMs: null },
      { href: "http://other.example.com/rules", purpose: "ROBOTS", isFirst: false, crawlDelayMs: null },
      { href: "http://other.example.com/c", purpose: "PAGE", isFirst: false, crawlDelayMs: 4_000 },
    ]);
    expect(done).toEqual(asked.map(({ href }) => href));
    expect(origin.requests.length).toBe(6);
  });

  it("W2 a hop is not sent, nor its name asked for, before it may go", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const gate = createGate();
    const asked = createGate();
    await using rig = createRig(origin, {
      admit: async () => {
        asked.open();
        await gate.opened;
        return { kind: "GO", done() {} };
      },
    });
    const fetching = rig.get(URL_A);
    await asked.opened;
    for (let turn = 0; turn < 20; turn += 1) await new Promise(setImmediate);
    expect([origin.connections(), rig.dialled.length]).toEqual([0, 0]);
    gate.open();
    expect((await fetching).outcome.ok).toBe(true);
  });

  it("W2 a wait at the first hop sends nothing and hands the attempt back", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const { admit, done } = createAdmission(() => WAIT);
    await using rig = createRig(origin, { admit });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, aborted: true, failure: null, sent: false, wait: WAIT.wait });
    expect([origin.connections(), done.length]).toEqual([0, 0]);
  });

  it("W2 a wait behind robots.txt has sent nothing of the attempt's own", async () => {
    await using origin = await startOrigin({ paths: { "/robots.txt": page(""), "/a": page("a") } });
    const { admit } = createAdmission(({ purpose }) => (purpose === "PAGE" ? WAIT : "GO"));
    await using rig = createRig(origin, { admit });
    const { outcome } = await rig.get(URL_A, RESPECT);
    expect(outcome).toMatchObject({ ok: false, aborted: true, sent: false, wait: WAIT.wait });
    expect(origin.requests.map(({ path }) => path)).toEqual(["/robots.txt"]);
  });

  it("W2 a wait for robots.txt itself hands the attempt back with that wait", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const { admit, asked } = createAdmission(({ purpose }) => (purpose === "ROBOTS" ? WAIT : "GO"));
    await using rig = createRig(origin, { admit });
    const outcomes = await Promise.all([rig.get(URL_A, RESPECT), rig.get(URL_A, RESPECT)]);
    for (const { outcome } of outcomes) {
      expect(outcome).toMatchObject({ ok: false, aborted: true, sent: false, wait: WAIT.wait });
    }
    expect(asked.length).toBe(1);
    expect(origin.connections()).toBe(0);
    await rig.get(URL_A, RESPECT);
    expect(asked.length).toBe(2);
  });

  it("W2 a wait at a later hop ends the attempt, which has sent something", async () => {
    await using origin = await startOrigin({ paths: { "/a": redirect("/b"), "/b": page("b") } });
    const { admit, done } = createAdmission((_hop, earlier) => (earlier === 1 ? WAIT : "GO"));
    await using rig = createRig(origin, { admit });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, aborted: true, sent: true, httpStatus: 302, wait: WAIT.wait });
    expect(outcome.hostKey).toBe("origin.example.com");
    expect(origin.requests.map(({ path }) => path)).toEqual(["/a"]);
    expect(done).toEqual([URL_A]);
  });

  it("W2 an attempt that is stopped while it waits ends as its stop says", async () => {
    await using origin = await startOrigin();
    const stopped: AdmitHop = ({ stop }) =>
      new Promise((resolve) => {
        stop.onStop(() => resolve({ kind: "STOPPED" }));
      });
    await using rig = createRig(origin, { admit: stopped });
    expect((await rig.get(URL_A, { attemptLimitMs: 100 })).outcome).toMatchObject({
      failure: { kind: "UPSTREAM", code: "RESPONSE_TIMEOUT" },
    });
    expect((await rig.get(URL_A, { deadline: performance.now() + 100 })).outcome).toMatchObject({
      failure: { kind: "LOCAL", code: "DEADLINE_EXCEEDED" },
    });
    const caller = new AbortController();
    const fetching = rig.get(URL_A, {}, caller.signal);
    caller.abort();
    expect((await fetching).outcome).toMatchObject({ aborted: true, wait: null, sent: false });
    expect(origin.connections()).toBe(0);
  });

  it.each([
    ["an answer", page("a"), {}],
    ["a failed answer", (reply: Parameters<ReturnType<typeof page>>[0]) => reply.send({ status: 503, body: "x" }), {}],
    ["a malformed answer", (reply: Parameters<ReturnType<typeof page>>[0]) => reply.write("nonsense\r\n\r\n"), {}],
    ["a reset", (reply: Parameters<ReturnType<typeof page>>[0]) => reply.reset(), {}],
    ["a time-out in the head", stall("HTTP/1.1 200 OK\r\n"), { attemptLimitMs: 200 }],
    ["a time-out in the body", stall("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"), { attemptLimitMs: 200 }],
    ["a body that is too large", page("x".repeat(2_000)), { maxBodyBytes: 1_000 }],
  ])("W2 an exchange that ends as %s is done once", async (_what, behaviour, overrides) => {
    await using origin = await startOrigin({ paths: { "/a": behaviour } });
    const { admit, done } = createAdmission();
    await using rig = createRig(origin, { admit });
    await rig.get(URL_A, overrides);
    expect(done).toEqual([URL_A]);
  });

  it("W2 an exchange whose sink fails, whose name leads inside, or that is aborted is done once", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a"), "/slow": (reply) => reply.closed } });
    const { admit, done } = createAdmission();
    const resolver = {
      resolve: (name: string) =>
        Promise.resolve({ ok: true as const, addresses: [name.startsWith("in") ? "10.0.0.1" : "93.184.216.34"] }),
    };
    await using rig = createRig(origin, { admit, resolver });
    const { signal } = new AbortController();
    const broken = {
      write() {
        throw new Error("disk full");
      },
    };
    await expect(rig.fetchInto(URL_A, broken, signal, {})).rejects.toThrow("disk full");
    await rig.get("http://inside.example.com/a");
    const caller = new AbortController();
    const fetching = rig.get("http://origin.example.com/slow", {}, caller.signal);
    await origin.request(2);
    caller.abort();
    await fetching;
    expect(done.length).toBe(3);
  });
});
