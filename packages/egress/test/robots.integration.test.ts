import { page, redirect, stall, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { createRig, createStubResolver } from "./rig.ts";

const RESPECT = { robots: "RESPECT" } as const;
const CLOSED = page("User-agent: *\nDisallow: /private\n");

describe("robots.txt", () => {
  it("is read once per origin and disallows before a request is sent", async () => {
    await using origin = await startOrigin({
      paths: { "/robots.txt": CLOSED, "/a": page("a"), "/private": page("p") },
    });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a", RESPECT)).outcome.ok).toBe(true);
    expect((await rig.get("http://origin.example.com/private", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" },
    });
    expect(origin.requests.map(({ path }) => path)).toEqual(["/robots.txt", "/a"]);
  });

  it("is not asked when it is to be ignored", async () => {
    await using origin = await startOrigin({ paths: { "/robots.txt": CLOSED, "/private": page("p") } });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/private")).outcome.ok).toBe(true);
    expect(origin.requests.length).toBe(1);
  });

  it("is asked at each new origin of a chain", async () => {
    await using origin = await startOrigin({
      paths: { "/robots.txt": CLOSED, "/a": redirect("http://other.example.com/private"), "/private": page("p") },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/a", RESPECT);
    expect(outcome).toMatchObject({ ok: false, sent: true, failure: { code: "ROBOTS_DISALLOWED" } });
    expect(origin.requests.map(({ path, headers }) => `${headers["host"]}${path}`)).toEqual([
      "origin.example.com/robots.txt",
      "origin.example.com/a",
      "other.example.com/robots.txt",
    ]);
  });

  it("holds for a redirect within its origin, too", async () => {
    await using origin = await startOrigin({
      paths: { "/robots.txt": CLOSED, "/a": redirect("/private"), "/private": page("p") },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/a", RESPECT);
    expect(outcome).toMatchObject({ ok: false, failure: { code: "ROBOTS_DISALLOWED" } });
  });

  it("that is absent forbids nothing", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a", RESPECT)).outcome.ok).toBe(true);
  });

  it.each([
    ["a 503", { status: 503, headers: { "Retry-After": "7" } }, "HTTP_SERVER_ERROR", "RETRY_AT"],
    ["a 500", { status: 500 }, "HTTP_SERVER_ERROR", "RETRY"],
    ["a 429", { status: 429 }, "RATE_LIMITED", "RETRY"],
    ["a 429 that says when", { status: 429, headers: { "Retry-After": "7" } }, "RATE_LIMITED", "RETRY_AT"],
    ["a 999", { status: 999 }, "HTTP_SERVER_ERROR", "RETRY"],
  ] as const)(
    "that fails with %s ends the attempt with that failure, and no byte of the target's was sent",
    async (_what, answer, code, disposition) => {
      await using origin = await startOrigin({
        paths: { "/robots.txt": (reply) => reply.send(answer), "/a": page("a") },
      });
      await using rig = createRig(origin);
      const { outcome } = await rig.get("http://origin.example.com/a", RESPECT);
      expect(outcome).toMatchObject({ ok: false, sent: false, failure: { kind: "UPSTREAM", code, disposition } });
      expect(origin.requests.length).toBe(1);
    },
  );

  it("W6 is fetched under the target's policy", async () => {
    await using origin = await startOrigin({
      paths: { "/robots.txt": redirect("http://169.254.169.254/robots.txt"), "/a": page("a") },
    });
    await using rig = createRig(origin, { resolver: createStubResolver({ "inside.example.com": ["10.0.0.1"] }) });
    expect((await rig.get("http://origin.example.com/a", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "REDIRECT_FORBIDDEN" },
    });
    expect((await rig.get("http://inside.example.com/a", RESPECT)).outcome).toMatchObject({
      ok: false,
      failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" },
    });
    await using hops = await startOrigin({
      paths: { "/robots.txt": page(""), "/a": redirect("http://inside.example.com/a") },
    });
    await using other = createRig(hops, { resolver: createStubResolver({ "inside.example.com": ["10.0.0.1"] }) });
    expect((await other.get("http://origin.example.com/a", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: true,
      failure: { kind: "UPSTREAM", code: "REDIRECT_FORBIDDEN" },
    });
  });

  it("W9 is read to its 500 KiB, however long it is", async () => {
    const rules = "User-agent: *\nDisallow: /private\n";
    await using origin = await startOrigin({
      paths: {
        "/robots.txt": async (reply) => {
          await reply.write(`HTTP/1.1 200 OK\r\n\r\n${rules}`);
          while (!reply.isClosed()) await reply.write("# filler\n".repeat(1_000));
        },
        "/a": page("a"),
        "/private": page("p"),
      },
    });
    await using rig = createRig(origin);
    expect((await rig.get("http://origin.example.com/a", RESPECT)).outcome.ok).toBe(true);
    expect((await rig.get("http://origin.example.com/private", RESPECT)).outcome).toMatchObject({
      failure: { code: "ROBOTS_DISALLOWED" },
    });
  });

  it.each([
    ["head", "HTTP/1.1 200 OK\r\n", "RESPONSE_TIMEOUT"],
    ["body", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nUser-agent: *\n", "BODY_TIMEOUT"],
  ])("F1 that stalls in its %s is the target's timeout, to be tried again", async (_phase, bytes, code) => {
    await using origin = await startOrigin({ paths: { "/robots.txt": stall(bytes), "/a": page("a") } });
    await using rig = createRig(origin, { limits: { robotsTimeoutMs: 300 } });
    const { outcome } = await rig.get("http://origin.example.com/a", RESPECT);
    expect(outcome).toMatchObject({
      ok: false,
      aborted: false,
      sent: false,
      failure: { kind: "UPSTREAM", code, disposition: "RETRY" },
    });
    await origin.allClosed();
  });

  it("W9 that stalls is waited for no longer than the attempt's own limit, nor past the job's deadline", async () => {
    const ends = [
      { attemptLimitMs: 300, code: "RESPONSE_TIMEOUT" },
      { deadline: performance.now() + 600, code: "DEADLINE_EXCEEDED" },
    ];
    for (const { code, ...limits } of ends) {
      await using origin = await startOrigin({ paths: { "/robots.txt": stall("HTTP/1.1 200 OK\r\n") } });
      await using rig = createRig(origin, { limits: { responseTimeoutMs: 60_000, robotsTimeoutMs: 60_000 } });
      const { outcome } = await rig.get("http://origin.example.com/a", { ...RESPECT, ...limits });
      expect(outcome).toMatchObject({ ok: false, aborted: false, sent: false, failure: { code } });
      expect(outcome.timings.totalMs).toBeLessThan(5_000);
      await origin.allClosed();
    }
  });

  it("F1 that stalls at a redirect's end is before that hop's head: the attempt's limit is RESPONSE_TIMEOUT", async () => {
    await using origin = await startOrigin({
      paths: {
        "/robots.txt": (reply) =>
          reply.request.headers["host"] === "other.example.com" ? reply.closed : page("")(reply),
        "/a": redirect("http://other.example.com/b"),
      },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/a", { ...RESPECT, attemptLimitMs: 1_500 });
    expect(origin.requests.length).toBe(3);
    expect(outcome).toMatchObject({
      ok: false,
      sent: true,
      httpStatus: 302,
      failure: { kind: "UPSTREAM", code: "RESPONSE_TIMEOUT", disposition: "RETRY" },
    });
  });

  it("J6 an abort while it is fetched closes its socket", async () => {
    await using origin = await startOrigin({ paths: { "/robots.txt": stall("HTTP/1.1 200 OK\r\n") } });
    await using rig = createRig(origin, { limits: { responseTimeoutMs: 20_000 } });
    const controller = new AbortController();
    const fetching = rig.get("http://origin.example.com/a", { ...RESPECT, attemptLimitMs: 20_000 }, controller.signal);
    await origin.request(1);
    controller.abort();
    expect((await fetching).outcome).toMatchObject({ ok: false, aborted: true, sent: false });
    await origin.allClosed();
  });

  it("one fetch of it serves all who ask at the same time", async () => {
    await using origin = await startOrigin({ paths: { "/robots.txt": CLOSED, "/a": page("a") } });
    await using rig = createRig(origin);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, (_, index) =>
        rig.get("http://origin.example.com/a", { ...RESPECT, callerId: `c${index}` }),
      ),
    );
    expect(outcomes.every(({ outcome }) => outcome.ok)).toBe(true);
    expect(origin.requests.filter(({ path }) => path === "/robots.txt").length).toBe(1);
  });
});
