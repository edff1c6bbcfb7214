import { type AddressInfo, createServer } from "node:net";
import { page, redirect, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import {
  ADMIT_ALL,
  allowedTargetsOf,
  createDirectTransport,
  createResolver,
  type ResolveOutcome,
  type Resolver,
  vetUrl,
} from "../src/index.ts";
import { openDnsServer } from "./dns-server.ts";
import { createRig, createStubResolver, PUBLIC_ADDRESS, toRequest } from "./rig.ts";

const URL_A = "http://origin.example.com/a";
const FORBIDDEN = {
  ok: false,
  sent: false,
  failure: { kind: "LOCAL", code: "TARGET_FORBIDDEN", disposition: "TERMINAL" },
};

/** A listener on loopback that must never be reached. */
async function startListener(): Promise<{ port: number; connections(): number; close(): Promise<void> }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    port,
    connections: () => connections,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}

/** Answers each question with the next of `answers`. */
function createTurningResolver(...answers: readonly (readonly string[])[]): Resolver & { readonly asked: string[] } {
  const asked: string[] = [];
  return {
    asked,
    resolve: (name) => {
      asked.push(name);
      const addresses = answers[Math.min(asked.length, answers.length) - 1] ?? [];
      return Promise.resolve({ ok: true, addresses });
    },
  };
}

describe("names", () => {
  it("W6 D1 a name is asked for once per hop and the answer is what is dialled", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const resolver = createTurningResolver([PUBLIC_ADDRESS], ["127.0.0.1"]);
    await using rig = createRig(origin, { resolver });
    const { outcome } = await rig.get(URL_A);
    expect(outcome.ok).toBe(true);
    expect(resolver.asked).toEqual(["origin.example.com"]);
    expect(rig.dialled).toEqual([PUBLIC_ADDRESS]);
  });

  it.each([
    ["D2 public then private", [PUBLIC_ADDRESS, "10.0.0.1"]],
    ["D2 private then public", ["10.0.0.1", PUBLIC_ADDRESS]],
    ["D3 public A, private AAAA", [PUBLIC_ADDRESS, "fd00::1"]],
    ["D3 private A, public AAAA", ["192.168.0.1", "2606:4700:4700::1111"]],
    ["D4 mapped", ["::ffff:10.0.0.1"]],
    ["D4 compatible", ["::7f00:1"]],
    ["D4 NAT64", ["64:ff9b::a00:1"]],
    [
      "D8 one of 500",
      [...Array.from({ length: 499 }, (_, index) => `93.184.${index >> 8}.${index & 255}`), "10.0.0.1"],
    ],
  ])("W6 %s: the name is refused without a connection", async (_what, answers) => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, { resolver: createStubResolver({ "origin.example.com": answers }) });
    expect((await rig.get(URL_A)).outcome).toMatchObject(FORBIDDEN);
    expect(rig.dialled).toEqual([]);
    expect(origin.connections()).toBe(0);
  });

  it.each([
    ["dns_not_found", "TERMINAL"],
    ["dns_no_address", "RETRY"],
    ["dns_servfail", "RETRY"],
    ["dns_timeout", "RETRY"],
  ] as const)("D5 %s is a DNS_FAILURE, %s", async (kind, disposition) => {
    await using origin = await startOrigin();
    const answer: ResolveOutcome = { ok: false, kind, nativeCode: "ECODE" };
    await using rig = createRig(origin, { resolver: { resolve: () => Promise.resolve(answer) } });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, sent: false, failure: { code: "DNS_FAILURE", disposition } });
  });

  it("W6 D9 a redirect to the same host resolves and vets the name again", async () => {
    await using origin = await startOrigin({ paths: { "/a": redirect("/b"), "/b": page("b") } });
    const resolver = createTurningResolver([PUBLIC_ADDRESS], ["127.0.0.1"]);
    await using rig = createRig(origin, { resolver });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({ ok: false, sent: true, failure: { kind: "UPSTREAM", code: "REDIRECT_FORBIDDEN" } });
    expect(resolver.asked.length).toBe(2);
    expect(origin.requests.length).toBe(1);
  });

  // An answer that is remembered was right where it was first used: there its private address was listed.
  it("W6 D9 an answer that is remembered is vetted again, by the rules of the URL it is used for", async () => {
    await using origin = await startOrigin({ paths: { "/a": redirect("http://origin.example.com/b") } });
    await using dns = await openDnsServer({
      "A origin.example.com": { answers: ["127.0.0.1"], ttl: 60 },
      "AAAA origin.example.com": { answers: [] },
    });
    const allowedTargets = allowedTargetsOf([{ host: "origin.example.com", port: origin.port }]);
    const dialled: number[] = [];
    const transport = createDirectTransport({
      resolver: createResolver({ servers: [dns.server] }),
      policy: { allowedTargets },
      overrides: {
        dial(address, port) {
          dialled.push(port);
          return { host: address, port };
        },
      },
    });
    const vetted = vetUrl(`http://origin.example.com:${origin.port}/a`, { allowedTargets });
    if (!vetted.ok) throw new Error(vetted.reason);
    const request = { ...toRequest(URL_A), url: vetted.url };
    const control = { signal: new AbortController().signal, admit: ADMIT_ALL };
    const outcome = await transport.fetch(request, { write() {} }, control);
    expect(outcome).toMatchObject({ ok: false, sent: true, failure: { code: "REDIRECT_FORBIDDEN" } });
    expect(dns.questions.length).toBe(2);
    expect(dialled).toEqual([origin.port]);
    await transport.close(performance.now());
  });

  it("D10 the next vetted address is dialled when the first refuses, without another question", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const closed = await startListener();
    await closed.close();
    const resolver = createTurningResolver(["93.184.216.34", "93.184.216.35"]);
    await using rig = createRig(origin, {
      resolver,
      dial: (address) => ({ host: "127.0.0.1", port: address.endsWith("34") ? closed.port : origin.port }),
    });
    const { outcome } = await rig.get(URL_A);
    expect(outcome.ok).toBe(true);
    expect(rig.dialled).toEqual(["93.184.216.34", "93.184.216.35"]);
    expect(resolver.asked.length).toBe(1);
  });

  it("W9 at most three addresses are dialled", async () => {
    await using origin = await startOrigin();
    const closed = await startListener();
    await closed.close();
    const answers = Array.from({ length: 8 }, (_, index) => `93.184.216.${index + 1}`);
    await using rig = createRig(origin, {
      resolver: createTurningResolver(answers),
      dial: () => ({ host: "127.0.0.1", port: closed.port }),
    });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECT_FAILURE", disposition: "RETRY", nativeCode: "ECONNREFUSED" },
    });
    expect(rig.dialled.length).toBe(3);
    expect(rig.transport.sockets()).toBe(0);
  });

  // The classic rebinding attack: the name is public when it is checked and loopback when it is connected to.
  it("W6 rebinding never reaches a listener on loopback", async () => {
    const listener = await startListener();
    await using origin = await startOrigin({
      paths: { "/a": redirect(`http://origin.example.com:${listener.port}/`) },
    });
    for (const answers of [[["127.0.0.1"]], [[PUBLIC_ADDRESS], ["127.0.0.1"]], [[PUBLIC_ADDRESS, "127.0.0.1"]]]) {
      await using rig = createRig(origin, {
        resolver: createTurningResolver(...answers),
        dial: (address, port) => ({
          host: address === PUBLIC_ADDRESS ? "127.0.0.1" : address,
          port: port === 80 ? origin.port : port,
        }),
      });
      const { outcome } = await rig.get(URL_A);
      expect(outcome.ok).toBe(false);
      expect(rig.dialled).not.toContain("127.0.0.1");
    }
    expect(listener.connections()).toBe(0);
    await listener.close();
  });
});
