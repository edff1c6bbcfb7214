import { createGate, type Origin, page, redirect, requireChromium, startOrigin } from "@keble-scraper/testkit";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { Hop } from "../src/index.ts";
import { findChromium } from "../src/render/index.ts";
import { openRenderRig, type RenderRig } from "./render-rig.ts";

const HTML = "text/html; charset=utf-8";
const BASE = "http://origin.example.com";

let origin: Origin;
let rig: RenderRig;

beforeAll(async () => {
  await requireChromium(() => findChromium(null));
  origin = await startOrigin();
  rig = await openRenderRig(origin, { settleTimeoutMs: 3_000 });
}, 300_000);

afterAll(async () => {
  await rig[Symbol.asyncDispose]();
  expect(rig.transport.sockets()).toBe(0);
  await origin.stop();
});

/** Paths of the origin's requests since the last call, without what a browser asks for by itself. */
let seenBefore = 0;
const paths = (): string[] =>
  origin.requests.slice(seenBefore).flatMap(({ path }) => (path === "/favicon.ico" ? [] : [path]));
beforeEach(() => {
  seenBefore = origin.requests.length;
});

function html(body: string) {
  return page(`<!doctype html><title>t</title>${body}`, HTML);
}

describe("a rendered page", () => {
  it("is the document that its scripts and frames made, with its doctype, as UTF-8", async () => {
    origin.on("/", html("<p id=a>before<iframe src=/frame></iframe><script src=/script.js></script>"));
    origin.on("/script.js", page("a.textContent = 'after \\u00e9\\u4e2d'", "text/javascript"));
    origin.on("/frame", html("<p>framed"));
    const { outcome, body } = await rig.render(`${BASE}/`);
    expect(outcome).toMatchObject({
      ok: true,
      sent: true,
      hostKey: "origin.example.com",
      response: {
        httpStatus: 200,
        finalUrl: `${BASE}/`,
        redirects: [],
        headers: { "content-type": HTML },
        contentType: { declared: "text/html; charset=utf-8", sniffed: "text/html" },
        charset: { declared: "utf-8", detected: "utf-8" },
        bodyBytes: body.length,
        hasBody: true,
      },
    });
    expect(body.toString()).toMatch(/^<!DOCTYPE html>\n<html><head><title>t<\/title>.*after é中/s);
    expect(paths().toSorted()).toEqual(["/", "/frame", "/script.js"]);
  });

  it.each([
    ["SCREENSHOT", "image/png", /^\x89PNG/],
    ["PDF", "application/pdf", /^%PDF-/],
    ["MHTML", "multipart/related", /Content-Type: multipart\/related;/],
  ] as const)("is a %s when that is to be captured", async (capture, type, start) => {
    origin.on("/", html(`<div style="height:40000px">tall</div>`));
    const { outcome, body } = await rig.render(`${BASE}/`, { capture });
    expect(outcome).toMatchObject({ ok: true, response: { contentType: { declared: type, sniffed: type } } });
    expect(body.toString("latin1")).toMatch(start);
    if (capture === "SCREENSHOT") expect([body.readUInt32BE(16), body.readUInt32BE(20)]).toEqual([1_280, 16_384]);
  });

  // A picture comes from the browser in one piece: noise of 4,096 by 16,384 took 1 GiB of the worker and its loop for 4 s.
  it("W9 is a screenshot of no more pixels than 1,280 by 16,384, however wide", async () => {
    origin.on("/", html(`<body style="margin:0"><div style="width:40000px;height:40000px">vast</div>`));
    const { body } = await rig.render(`${BASE}/`, { capture: "SCREENSHOT" });
    expect([body.readUInt32BE(16), body.readUInt32BE(20)]).toEqual([4_096, 5_120]);
  });

  it.each(["DOM", "SCREENSHOT", "PDF", "MHTML"] as const)(
    "W9 is refused when its %s is larger than the job allows",
    async (capture) => {
      origin.on("/", html(`<p>${"large ".repeat(500)}`));
      const { outcome, writes } = await rig.render(`${BASE}/`, { capture, maxBodyBytes: 600 });
      expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE", disposition: "TERMINAL" } });
      expect(writes).toBe(0);
    },
  );

  // A fault would lose the attempt, and hold back its process's other jobs for what one page's style says.
  it("that cannot be printed is RENDER_FAILED, and no fault", async () => {
    origin.on("/", html(`<style>@page { size: 1000000in 1000000in }</style><p>vast`));
    const { outcome } = await rig.render(`${BASE}/`, { capture: "PDF" });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "RENDER_FAILED", nativeCode: "NOT_CAPTURED" } });
  });

  it("goes to the sink piece by piece, and ends with the sink's own fault", async () => {
    origin.on("/", html(`<p>${"x".repeat(200_000)}`));
    const { writes, body } = await rig.render(`${BASE}/`);
    expect([writes, body.length > 200_000]).toEqual([4, true]);
    await expect(
      rig.transport.fetch(
        (await import("./rig.ts")).toRequest(`${BASE}/`),
        { write: () => Promise.reject(new Error("disk full")) },
        { signal: new AbortController().signal, admit: (await import("../src/index.ts")).ADMIT_ALL },
      ),
    ).rejects.toThrow("disk full");
  });

  it("is captured as it is when its last image does not come in time", async () => {
    const over = createGate();
    origin.on("/", html("<p>here<img src=/never>"));
    origin.on("/never", async () => {
      await over.opened;
    });
    const { outcome, body } = await rig.render(`${BASE}/`, { attemptLimitMs: 12_000 });
    over.open();
    expect(outcome.ok).toBe(true);
    expect(body.toString()).toContain("<p>here");
  });

  it("is not held up by what wants a login", async () => {
    origin.on("/401", (reply) =>
      reply.send({
        status: 401,
        headers: { "Content-Type": HTML, "WWW-Authenticate": 'Basic realm="x"' },
        body: "login",
      }),
    );
    origin.on(
      "/",
      html("<img src=/401><p id=a><script>fetch('/401').then((r) => { a.textContent = r.status })</script>"),
    );
    expect((await rig.render(`${BASE}/`)).body.toString()).toContain('<p id="a">401');
    expect((await rig.render(`${BASE}/401`)).outcome).toMatchObject({ ok: true, response: { httpStatus: 401 } });
  });

  it("cannot be had by HEAD", async () => {
    const { outcome } = await rig.render(`${BASE}/`, { method: "HEAD" });
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { kind: "LOCAL", code: "NOT_SUPPORTED" } });
  });

  it("is a typed failure when it is a download or a PDF", async () => {
    origin.on("/file", page("\x00\x01\x02", "application/octet-stream"));
    origin.on("/pdf", page("%PDF-1.4", "application/pdf"));
    origin.on("/attached", (reply) =>
      reply.send({ headers: { "Content-Type": HTML, "Content-Disposition": "attachment" }, body: "<p>x" }),
    );
    for (const path of ["/file", "/pdf", "/attached"]) {
      const { outcome } = await rig.render(`${BASE}${path}`);
      const failure = { code: "RENDER_FAILED", origin: "TARGET", disposition: "TERMINAL", nativeCode: "DOWNLOAD" };
      expect({ path, ...outcome }).toMatchObject({ ok: false, httpStatus: 200, failure });
    }
  });

  it("has no body when its answer has none, and an empty document when an error has none", async () => {
    origin.on("/204", (reply) => reply.write("HTTP/1.1 204 No Content\r\n\r\n"));
    origin.on("/404", (reply) => reply.send({ status: 404, headers: { "Content-Type": HTML } }));
    expect((await rig.render(`${BASE}/204`)).outcome).toMatchObject({
      ok: true,
      response: { httpStatus: 204, hasBody: false },
    });
    const { outcome, body } = await rig.render(`${BASE}/404`);
    expect(outcome).toMatchObject({ ok: true, response: { httpStatus: 404 } });
    expect(body.toString()).toBe("<html><head></head><body></body></html>");
  });

  it("is left by dialogs and popups, and asks nobody for permissions", async () => {
    origin.on("/popup", html("popup"));
    origin.on(
      "/",
      html(`<p id=a><script>alert(1); const said = confirm("?"); onbeforeunload = () => "stay";
        window.open("/popup"); onload = async () => { const { state } = await navigator.permissions.query({ name: "geolocation" });
        a.textContent = said + " " + state + " " + Notification.permission; }</script>`),
    );
    const { outcome, body } = await rig.render(`${BASE}/`);
    expect(outcome.ok).toBe(true);
    expect(body.toString()).toMatch(/<p id="a">false (?:denied|prompt) denied/);
    expect(paths()).not.toContain("/popup");
  });

  it("shares no cookie, storage or cache with another job's", async () => {
    origin.on("/cached.js", (reply) =>
      reply.send({ headers: { "Content-Type": "text/javascript", "Cache-Control": "max-age=3600" }, body: "1" }),
    );
    origin.on("/", (reply) =>
      reply.send({
        headers: { "Content-Type": HTML, "Set-Cookie": ["a=1; Max-Age=60", "b=2"] },
        body: `<script src=/cached.js></script><p id=a><script>a.textContent = document.cookie + localStorage.length; localStorage.setItem("k", "v")</script>`,
      }),
    );
    const [first, second] = [await rig.render(`${BASE}/`), await rig.render(`${BASE}/`)];
    expect(first.outcome).toMatchObject({
      ok: true,
      response: { headers: { "set-cookie": ["a=1; Max-Age=60", "b=2"] } },
    });
    for (const { body } of [first, second]) expect(body.toString()).toContain('<p id="a">a=1; b=20');
    expect(
      origin.requests
        .slice(seenBefore)
        .map(({ headers }) => headers["cookie"])
        .slice(0, 1),
    ).toEqual([undefined]);
    expect(paths()).toEqual(["/", "/cached.js", "/", "/cached.js"]);
    expect(origin.requests.filter(({ path }) => path === "/").at(-1)?.headers["cookie"]).toBeUndefined();
  });
});

describe("a navigation", () => {
  it("carries the caller's headers to the first origin and to no other", async () => {
    const headers = {
      "User-Agent": "Caller/1",
      "Accept-Language": "de",
      Referer: "https://ref.example.org/x",
      Accept: "text/html",
    };
    origin.on("/", redirect("/same"));
    origin.on("/same", redirect("http://other.example.com/"));
    const elsewhere = origin.requests.length + 2;
    origin.on("/same", redirect("http://other.example.com/elsewhere"));
    origin.on("/elsewhere", html("<img src=/image>"));
    const { outcome } = await rig.render(`${BASE}/`, { headers });
    expect(outcome).toMatchObject({ ok: true, response: { finalUrl: "http://other.example.com/elsewhere" } });
    const sent = origin.requests.slice(elsewhere - 2, elsewhere + 1).map((request) => request.headers);
    for (const own of sent.slice(0, 2)) {
      expect(own).toMatchObject({
        "user-agent": "Caller/1",
        "accept-language": "de",
        referer: "https://ref.example.org/x",
        accept: "text/html",
      });
    }
    expect(sent[2]?.["accept-language"]).not.toBe("de");
    expect(sent[2]?.["referer"]).toBeUndefined();
    expect(sent[2]?.["proxy-authorization"]).toBeUndefined();
  });

  it("says who we are when the caller does not", async () => {
    origin.on("/", html("x"));
    await rig.render(`${BASE}/`);
    expect(origin.requests[seenBefore]?.headers["user-agent"]).toMatch(/^KebleScraper\//);
  });

  it("W2 asks to be let go for each request of its chain, and gives back each", async () => {
    origin.on("/robots.txt", page("User-agent: *\nDisallow: /private\n"));
    origin.on("/", redirect("/end"));
    origin.on("/end", redirect("http://other.example.com/last"));
    origin.on("/last", html("<img src=/image>"));
    const hops: string[] = [];
    let open = 0;
    const admit = (hop: Hop) => {
      hops.push(`${hop.purpose} ${hop.url.target} ${hop.isFirst}`);
      open += 1;
      return Promise.resolve({ kind: "GO", done: () => void (open -= 1) } as const);
    };
    const { outcome } = await rig.render("http://chain.example.com/", { robots: "RESPECT" }, { admit });
    expect(outcome).toMatchObject({
      ok: true,
      response: {
        redirects: [
          { url: "http://chain.example.com/", httpStatus: 302 },
          { url: "http://chain.example.com/end", httpStatus: 302 },
        ],
      },
    });
    expect(hops).toEqual([
      "ROBOTS /robots.txt true",
      "PAGE / true",
      "PAGE /end false",
      "ROBOTS /robots.txt false",
      "PAGE /last false",
    ]);
    expect(open).toBe(0);
  });

  it("W1 ends without a request when it has to wait", async () => {
    const wait = { horizonMs: 9_000, dueMs: 8_000 };
    const { outcome } = await rig.render(`${BASE}/`, {}, { admit: () => Promise.resolve({ kind: "WAIT", wait }) });
    expect(outcome).toMatchObject({ ok: false, aborted: true, sent: false, wait });
    expect(paths()).toEqual([]);
  });

  it("asks robots.txt about every URL of its chain, by a client of our own", async () => {
    origin.on("/robots.txt", page("User-agent: *\nDisallow: /private\n"));
    origin.on("/a", redirect("/private"));
    origin.on("/b", html("<script>location = '/private'</script>"));
    for (const path of ["/private", "/a", "/b"]) {
      const { outcome } = await rig.render(`http://robots.example.com${path}`, { robots: "RESPECT" });
      expect({ path, ...outcome }).toMatchObject({ ok: false, failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" } });
    }
    expect(paths()).toEqual(["/robots.txt", "/a", "/b"]);
  });

  it("follows a document that leads elsewhere by itself, as a hop of its own", async () => {
    origin.on("/script", html("<script>location = '/end?s'</script><p>gone"));
    origin.on("/meta", html("<meta http-equiv=refresh content='0;url=/end?m'>"));
    origin.on(
      "/reload",
      html("<script>if (!document.cookie) { document.cookie = 'a=1'; location.reload() }</script><p>in"),
    );
    origin.on("/end", html("<p>end"));
    for (const [path, finalPath, text] of [
      ["/script", "/end?s", "end"],
      ["/meta", "/end?m", "end"],
      ["/reload", "/reload", "in"],
    ] as const) {
      const { outcome, body } = await rig.render(`${BASE}${path}`);
      const redirects = [{ url: `${BASE}${path}`, httpStatus: 200 }];
      expect({ path, ...outcome }).toMatchObject({
        ok: true,
        response: { finalUrl: `${BASE}${finalPath}`, redirects },
      });
      expect(body.toString()).toContain(`<p>${text}`);
    }
    origin.on("/for-ever", html("<script>location.reload()</script>"));
    expect((await rig.render(`${BASE}/for-ever`)).outcome).toMatchObject({
      ok: false,
      failure: { code: "TOO_MANY_REDIRECTS" },
    });
  });
});

describe("a refused page", () => {
  it("F3 is RETRY_AT when its target says until when, with the body as evidence and nothing of it loaded", async () => {
    origin.on("/429", (reply) =>
      reply.send({
        status: 429,
        headers: { "Content-Type": HTML, "Retry-After": "7" },
        body: "<p>slow<img src=/more>",
      }),
    );
    const { outcome } = await rig.render(`${BASE}/429`);
    expect(outcome).toMatchObject({
      ok: false,
      httpStatus: 429,
      failure: { code: "RATE_LIMITED", disposition: "RETRY_AT" },
    });
    expect(outcome.ok || outcome.aborted ? null : outcome.refusedBody?.bytes.toString()).toBe("<p>slow<img src=/more>");
    expect(paths()).toEqual(["/429"]);
  });

  it("is judged by its status and type before it is shown", async () => {
    origin.on("/404", (reply) => reply.send({ status: 404, headers: { "Content-Type": HTML }, body: "<p>no" }));
    origin.on("/500", (reply) => reply.send({ status: 500, headers: { "Content-Type": HTML }, body: "<p>broken" }));
    origin.on("/json", page("{}", "application/json"));
    const strict = { accept: "SUCCESS_ONLY" } as const;
    expect((await rig.render(`${BASE}/404`, strict)).outcome).toMatchObject({ failure: { code: "NOT_FOUND" } });
    expect((await rig.render(`${BASE}/404`)).body.toString()).toContain("<p>no</p>");
    expect((await rig.render(`${BASE}/500`)).outcome).toMatchObject({
      failure: { code: "HTTP_SERVER_ERROR", disposition: "RETRY" },
    });
    expect((await rig.render(`${BASE}/json`, { contentTypes: ["text/html"] })).outcome).toMatchObject({
      failure: { code: "UNWANTED_CONTENT_TYPE" },
    });
  });

  it("is BLOCKED when it is a wall's, by its head, its body or what its script drew, with evidence", async () => {
    const wall = "<title>Just a moment...</title><div class=h-captcha></div>";
    origin.on("/head", (reply) =>
      reply.send({ status: 403, headers: { "Content-Type": HTML, "cf-mitigated": "challenge" }, body: "<p>challenge" }),
    );
    origin.on("/body", (reply) => reply.send({ status: 403, headers: { "Content-Type": HTML }, body: wall }));
    origin.on("/drawn", page(`<script>document.write(atob("${Buffer.from(wall).toString("base64")}"))</script>`, HTML));
    for (const path of ["/head", "/body", "/drawn"]) {
      const { outcome, writes } = await rig.render(`${BASE}${path}`);
      expect({ path, ...outcome }).toMatchObject({
        ok: false,
        failure: { code: "BLOCKED", disposition: "RETRY_NEXT_ROUTE" },
        refusedBody: { finalUrl: `${BASE}${path}` },
      });
      expect(writes).toBe(0);
    }
  });
});

describe("an attempt's end", () => {
  it("W9 comes when a page moves more bytes than its budget, whoever asks for them", async () => {
    origin.on(
      "/",
      html(
        "<script>(async () => { for (;;) await (await fetch('/more', { cache: 'no-store' })).arrayBuffer() })()</script><img src=/never>",
      ),
    );
    origin.on("/more", page(Buffer.alloc(4_000_000), "application/octet-stream"));
    origin.on("/never", async (reply) => {
      await reply.closed;
    });
    const { outcome } = await rig.render(`${BASE}/`, { maxBodyBytes: 1_000 });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE", disposition: "TERMINAL" } });
    expect(outcome.usage.socketBytes).toBeLessThanOrEqual(16 * 1024 * 1024 + 4_000);
    await origin.allClosed();
  });

  it("W9 comes when small bodies unpack to more than the budget", async () => {
    const { gzipSync } = await import("node:zlib");
    const packed = gzipSync(Buffer.alloc(60_000_000, "x"));
    origin.on("/", html("<script>fetch('/packed').then((r) => r.arrayBuffer())</script><img src=/never>"));
    origin.on("/packed", (reply) => reply.send({ headers: { "Content-Encoding": "gzip" }, body: packed }));
    const { outcome } = await rig.render(`${BASE}/`, { maxBodyBytes: 1_000 });
    expect(outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE" } });
  });

  it("J5 comes with the deadline, the attempt's limit or the caller's signal, and leaves no socket", async () => {
    origin.on("/stuck", html("<script>for (;;);</script>"));
    origin.on("/silent", async (reply) => {
      await reply.closed;
    });
    const cases = [
      ["/stuck", { deadline: 4_000 }, { failure: { kind: "LOCAL", code: "DEADLINE_EXCEEDED" } }],
      ["/stuck", { attemptLimitMs: 4_000 }, { failure: { code: "BODY_TIMEOUT", disposition: "RETRY" } }],
      ["/silent", { attemptLimitMs: 4_000 }, { failure: { code: "RESPONSE_TIMEOUT", disposition: "RETRY" } }],
    ] as const;
    await Promise.all(
      cases.map(async ([path, limits, expected]) => {
        const limited = "deadline" in limits ? { deadline: performance.now() + limits.deadline } : limits;
        const startedAt = performance.now();
        const { outcome } = await rig.render(`${BASE}${path}`, limited);
        expect({ path, ...outcome }).toMatchObject(expected);
        expect(performance.now() - startedAt).toBeLessThan(8_000);
      }),
    );
    await origin.allClosed();
    expect(rig.transport.sockets()).toBe(0);
    const controller = new AbortController();
    const rendering = rig.render(`${BASE}/silent?aborted`, {}, { signal: controller.signal });
    await origin.request(origin.requests.length + 1);
    controller.abort();
    expect((await rendering).outcome).toMatchObject({ ok: false, aborted: true, wait: null, sent: true });
    await origin.allClosed();
    origin.on("/", html("<p>fine"));
    expect((await rig.render(`${BASE}/`)).outcome.ok).toBe(true);
  });
});
