import { createSocket } from "node:dgram";
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { createGate, type Origin, page, redirect, requireChromium, startOrigin } from "@keble-scraper/testkit";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Resolver } from "../src/dns/resolver.ts";
import { findChromium } from "../src/render/index.ts";
import { openRenderRig, type RenderRig } from "./render-rig.ts";
import { PUBLIC_ADDRESS } from "./rig.ts";

const HTML = "text/html; charset=utf-8";

/** Listeners that nothing may ever reach: TCP on both loopbacks, UDP on IPv4. */
async function openTrap() {
  const touched: string[] = [];
  const servers = await Promise.all(
    ["127.0.0.1", "::1"].map(async (host) => {
      const server = createServer((socket) => {
        touched.push(`tcp ${host}`);
        socket.end("HTTP/1.1 200 OK\r\nAccess-Control-Allow-Origin: *\r\nContent-Length: 6\r\n\r\nSECRET");
      });
      server.listen(0, host);
      await once(server, "listening");
      return server;
    }),
  );
  const udp = createSocket("udp4", () => touched.push("udp"));
  udp.bind(0, "127.0.0.1");
  await once(udp, "listening");
  const [v4 = 0, v6 = 0] = servers.map((server) => (server.address() as AddressInfo).port);
  return {
    touched,
    v4,
    v6,
    udp: udp.address().port,
    async [Symbol.asyncDispose]() {
      for (const server of servers) server.close();
      await new Promise<void>((resolve) => udp.close(resolve));
    },
  };
}

type Trap = Awaited<ReturnType<typeof openTrap>>;

/** Every second question about a `rebind` name is answered with loopback; `inside` and `mixed` lead there at once. */
function createRebindingResolver(): Resolver {
  const asked = new Map<string, number>();
  return {
    resolve(name) {
      const count = asked.get(name) ?? 0;
      asked.set(name, count + 1);
      const inside = name.startsWith("inside") || (name.startsWith("rebind") && count % 2 === 1);
      if (name.startsWith("mixed")) return Promise.resolve({ ok: true, addresses: [PUBLIC_ADDRESS, "127.0.0.1"] });
      return Promise.resolve({ ok: true, addresses: [inside ? "127.0.0.1" : PUBLIC_ADDRESS] });
    },
  };
}

/** Where a page may want to go and must not. */
function forbidden({ v4, v6 }: Trap): string[] {
  return [
    "http://169.254.169.254/latest/meta-data/",
    `http://127.0.0.1:${v4}/`,
    `http://[::1]:${v6}/`,
    `http://localhost:${v4}/`,
    `http://0.0.0.0:${v4}/`,
    `http://[::ffff:127.0.0.1]:${v4}/`,
    `http://2130706433:${v4}/`,
    `https://127.0.0.1:${v4}/`,
    `http://inside.example.com:${v4}/`,
    `http://mixed.example.com:${v4}/`,
    "http://metadata.google.internal/",
    "/to-trap",
    "file:///etc/passwd",
  ];
}

/** A page that tries all it can, tells how it went, and is loaded only when it has. */
function hostilePage(trap: Trap): string {
  const urls = JSON.stringify(forbidden(trap));
  return `<!doctype html><title>hostile</title>
<link rel=dns-prefetch href="//prefetch.example.com"><link rel=preconnect href="http://127.0.0.1:${trap.v4}">
<link rel=prefetch href="http://127.0.0.1:${trap.v4}/prefetch"><link rel=stylesheet href="http://127.0.0.1:${trap.v4}/css">
<link rel=manifest href="http://127.0.0.1:${trap.v4}/manifest"><link rel=icon href="http://127.0.0.1:${trap.v4}/icon">
<link rel=preload as=script href="http://127.0.0.1:${trap.v4}/preload"><link rel=modulepreload href="http://127.0.0.1:${trap.v4}/module">
<style>@import "http://127.0.0.1:${trap.v4}/import";
@font-face { font-family: f; src: url("http://127.0.0.1:${trap.v4}/font"); }
body { font-family: f; background: url("http://[::1]:${trap.v6}/background"); }</style>
<script type=speculationrules>{"prefetch":[{"urls":["http://127.0.0.1:${trap.v4}/speculation"],"eagerness":"immediate"}]}</script>
<iframe src="/meta-refresh"></iframe><iframe src="file:///etc/passwd"></iframe><iframe src="/to-trap"></iframe>
<iframe srcdoc='<img src="http://127.0.0.1:${trap.v4}/srcdoc">'></iframe>
<object data="http://127.0.0.1:${trap.v4}/object"></object><embed src="http://127.0.0.1:${trap.v4}/embed">
<video src="http://127.0.0.1:${trap.v4}/video" autoplay></video><audio src="http://127.0.0.1:${trap.v4}/audio" autoplay></audio>
<form id=form method=post action="http://127.0.0.1:${trap.v4}/form" target=sink><input name=a></form><iframe name=sink></iframe>
<img src="/hold">
<script>
const urls = ${urls};
const found = [];
const within = (promise) => Promise.race([promise, new Promise((resolve) => setTimeout(resolve, 1500))]);
const settle = (promise) => within(Promise.resolve(promise).then((text) => { if (/SECRET|root:/.test(String(text))) found.push(String(text)); }, () => {}));
const tag = (name, attributes) => new Promise((resolve) => {
  const element = Object.assign(document.createElement(name), attributes);
  element.onload = element.onerror = resolve;
  document.body.append(element);
});
const socket = (url) => new Promise((resolve) => { try { const s = new WebSocket(url); s.onopen = () => resolve("SECRET"); s.onerror = resolve; } catch { resolve(); } });
const stream = (url) => new Promise((resolve) => { const s = new EventSource(url); s.onerror = resolve; s.onopen = () => resolve("SECRET"); });
const xhr = (url) => new Promise((resolve) => { const x = new XMLHttpRequest(); x.onloadend = () => resolve(x.responseText); try { x.open("GET", url); x.send(); } catch { resolve(); } });
const worker = (source) => new Promise((resolve) => { const w = new Worker(URL.createObjectURL(new Blob([source]))); w.onmessage = (e) => resolve(e.data); w.onerror = resolve; });
const ice = async () => {
  const peer = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:${trap.udp}" },
    { urls: "turn:127.0.0.1:${trap.udp}", username: "u", credential: "c" },
    { urls: "turn:127.0.0.1:${trap.v4}?transport=tcp", username: "u", credential: "c" }] });
  peer.createDataChannel("x");
  await peer.setLocalDescription(await peer.createOffer());
  await new Promise((resolve) => { peer.onicegatheringstatechange = () => peer.iceGatheringState === "complete" && resolve(); });
};
document.addEventListener("DOMContentLoaded", async () => {
  const tries = [ice()];
  for (const url of urls) {
    tries.push(fetch(url).then((r) => r.text()), fetch(url, { mode: "no-cors" }), xhr(url), stream(url));
    tries.push(tag("img", { src: url }), tag("script", { src: url }), tag("iframe", { src: url }));
    tries.push(worker("fetch(" + JSON.stringify(new URL(url, location).href) + ").then(r => r.text()).then(postMessage, postMessage)"));
    tries.push(worker("try { importScripts(" + JSON.stringify(new URL(url, location).href) + ") } catch {} postMessage(0)"));
    try { navigator.sendBeacon(url, "x"); } catch {}
    try { window.open(url); } catch {}
  }
  for (const url of ["ws://127.0.0.1:${trap.v4}/", "ws://[::1]:${trap.v6}/", "wss://127.0.0.1:${trap.v4}/", "ws://169.254.169.254/", "ws://inside.example.com:${trap.v4}/"]) tries.push(socket(url));
  tries.push(navigator.serviceWorker?.register("/service-worker.js").catch(() => {}));
  try { const t = new WebTransport("https://127.0.0.1:${trap.udp}/"); tries.push(t.ready); } catch {}
  form.submit();
  const link = Object.assign(document.createElement("a"), { href: "http://127.0.0.1:${trap.v4}/clicked", target: "sink", ping: "http://127.0.0.1:${trap.v4}/ping" });
  document.body.append(link);
  link.click();
  await Promise.all(tries.map(settle));
  document.title = "tried " + tries.length + " found " + found.length;
  fetch("/report", { method: "POST", body: "done" });
});
</script>`;
}

describe("a hostile page", () => {
  let trap: Trap;
  let origin: Origin;
  let rig: RenderRig;

  beforeAll(async () => {
    await requireChromium(() => findChromium(null));
    trap = await openTrap();
    const reported = createGate();
    origin = await startOrigin({
      paths: {
        "/": page(hostilePage(trap), HTML),
        "/to-trap": redirect(`http://127.0.0.1:${trap.v4}/redirected`),
        "/meta-refresh": page(`<meta http-equiv=refresh content="0;url=http://127.0.0.1:${trap.v4}/refreshed">`, HTML),
        "/service-worker.js": page("self.addEventListener('install', () => {})", "text/javascript"),
        "/report": async (reply) => {
          reported.open();
          await reply.send({ status: 204, reason: "No Content" });
        },
        "/hold": async (reply) => {
          await reported.opened;
          await reply.send({ headers: { "Content-Type": "image/png" }, body: "" });
        },
        "/plain": page("<p>plain", HTML),
        "/again": page(
          "<p id=out>waiting<script>fetch('/plain').then((r) => { out.textContent = r.status })</script>",
          HTML,
        ),
      },
    });
    rig = await openRenderRig(origin, {
      resolver: createRebindingResolver(),
      // Some of the page's tries never end.
      settleTimeoutMs: 6_000,
      // Whatever the policy let through by mistake would reach the trap, not only what is loopback by itself.
      dial: (address) => ({ host: "127.0.0.1", port: address === PUBLIC_ADDRESS ? origin.port : trap.v4 }),
    });
  }, 300_000);

  afterAll(async () => {
    await rig[Symbol.asyncDispose]();
    await origin.stop();
    await trap[Symbol.asyncDispose]();
  });

  it("W6 a page that tries every way to an internal address reaches none, by TCP or by UDP", async () => {
    const { outcome, body } = await rig.render("http://hostile.example.com/");
    expect(outcome).toMatchObject({ ok: true, response: { httpStatus: 200, finalUrl: "http://hostile.example.com/" } });
    expect(/<title>(.*?)<\/title>/.exec(body.toString())?.[1]).toMatch(/^tried 1\d\d found 0$/);
    expect(trap.touched).toEqual([]);
    expect([...new Set(rig.dialled)].filter((dialled) => !dialled.startsWith(PUBLIC_ADDRESS))).toEqual([]);
    expect(origin.requests.some(({ path }) => path === "/service-worker.js")).toBe(false);
  });

  it("W6 a name that turns inward between two connections of one page is refused at the second", async () => {
    const { outcome, body } = await rig.render("http://rebind.example.com/again");
    expect(outcome).toMatchObject({ ok: true });
    expect(body.toString()).toContain('<p id="out">403</p>');
    expect(trap.touched).toEqual([]);
  });

  it("W6 a page whose own name leads inside is TARGET_FORBIDDEN, and behind a redirect REDIRECT_FORBIDDEN", async () => {
    origin.on("/in", redirect("http://inside.example.com/"));
    origin.on("/meta", redirect("http://169.254.169.254/"));
    const first = await rig.render("http://inside.example.com/");
    expect(first.outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" },
    });
    const tls = await rig.render("https://mixed.example.com/");
    expect(tls.outcome).toMatchObject({ ok: false, sent: false, failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN" } });
    for (const path of ["/in", "/meta", "/to-trap"]) {
      const { outcome } = await rig.render(`http://a.example.com${path}`);
      expect(outcome).toMatchObject({ ok: false, failure: { code: "REDIRECT_FORBIDDEN", disposition: "TERMINAL" } });
    }
    expect(trap.touched).toEqual([]);
  });

  it.each([
    "location.href = TRAP",
    "location.href = 'http://169.254.169.254/'",
    "location.href = 'http://inside.example.com/'",
    "onload = () => location.replace(TRAP)",
    "document.write('<meta http-equiv=refresh content=0;url=' + TRAP + '>')",
  ])("W6 a page that leads its main frame inside by %s is REDIRECT_FORBIDDEN", async (script) => {
    origin.on("/leave", page(`<script>const TRAP = "http://127.0.0.1:${trap.v4}/"; ${script}</script>`, HTML));
    const { outcome } = await rig.render("http://a.example.com/leave");
    expect(outcome).toMatchObject({ ok: false, failure: { code: "REDIRECT_FORBIDDEN", disposition: "TERMINAL" } });
    expect(trap.touched).toEqual([]);
  });

  it("W6 a page that leads its main frame to a file, to a frame of its own making or to a form's answer goes nowhere", async () => {
    const scripts = [
      ["location.href = 'file:///etc/passwd'", { ok: true }],
      ["location.href = 'chrome://version'", { ok: true }],
      ["location.href = 'data:text/html,data'", { ok: true }],
      ["location.href = 'about:blank'", { failure: { code: "RENDER_FAILED", nativeCode: "LEFT" } }],
      ["location.href = URL.createObjectURL(new Blob(['blob'], { type: 'text/html' }))", { ok: false }],
      ["document.write('<form id=f method=post></form>'); f.submit()", { failure: { nativeCode: "LEFT" } }],
    ] as const;
    await Promise.all(
      scripts.map(async ([script, expected], index) => {
        origin.on(`/leave${index}`, page(`<p>here<script>onload = () => { ${script} }</script>`, HTML));
        const { outcome, body } = await rig.render(`http://a.example.com/leave${index}`, { attemptLimitMs: 20_000 });
        expect({ script, ...outcome }).toMatchObject(expected);
        expect(body.toString()).not.toContain("root:");
      }),
    );
  });
});
