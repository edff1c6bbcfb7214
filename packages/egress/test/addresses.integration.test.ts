import { type AddressInfo, createServer } from "node:net";
import { createSecureContext } from "node:tls";
import { page, readTestAuthority, readTlsFixture, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { NEXT_ADDRESS_AFTER_MS } from "../src/transport/dial.ts";
import { openBlackHole } from "./black-hole.ts";
import { createRig, createStubResolver, type RigOptions } from "./rig.ts";

const URL_A = "http://origin.example.com/a";
const V4 = ["93.184.216.34", "93.184.216.35", "93.184.216.36"] as const;
const V6 = ["2606:2800:220:1::1", "2606:2800:220:1::2", "2606:2800:220:1::3"] as const;

async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Answers the test's name with `addresses`, and sends each to the port that `ports` names, else to `port`. */
function leading(addresses: readonly string[], ports: Readonly<Record<string, number>>, port: number): RigOptions {
  return {
    resolver: createStubResolver({ "origin.example.com": addresses }),
    dial: (address) => ({ host: "127.0.0.1", port: ports[address] ?? port }),
  };
}

describe("several addresses", () => {
  it.each([
    [
      [...V4, ...V6],
      [V6[0], V4[0], V6[1]],
    ],
    [
      [V4[0], V4[1], V6[0]],
      [V6[0], V4[0], V4[1]],
    ],
    [[...V4, "93.184.216.37"], [...V4]],
  ])("W6 %j are tried as %j, and no more than three", async (addresses, order) => {
    const port = await closedPort();
    await using origin = await startOrigin();
    await using rig = createRig(origin, leading(addresses, {}, port));
    expect((await rig.get(URL_A)).outcome).toMatchObject({ ok: false, failure: { code: "CONNECT_FAILURE" } });
    expect(rig.dialled).toEqual(order);
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W6 one that refuses is followed by the next at once", async () => {
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    const ports = { [V6[0]]: await closedPort(), [V4[0]]: await closedPort() };
    await using rig = createRig(origin, leading([V4[0], V4[1], V6[0]], ports, origin.port));
    const { outcome } = await rig.get(URL_A);
    expect(outcome.ok).toBe(true);
    expect(rig.dialled).toEqual([V6[0], V4[0], V4[1]]);
    // Two that were waited for would have taken this long at least.
    expect(outcome.timings.connectMs).toBeLessThan(2 * NEXT_ADDRESS_AFTER_MS);
  });

  // Half the broken IPv6 in the world is silent: waiting for its time-out would spend the hop's whole budget.
  it("W6 one that does not answer is overtaken after 250 ms, and its socket is destroyed", async () => {
    await using hole = await openBlackHole();
    await using origin = await startOrigin({ paths: { "/a": page("a") } });
    await using rig = createRig(origin, leading([V4[0], V6[0]], { [V6[0]]: hole.port }, origin.port));
    const { outcome } = await rig.get(URL_A);
    expect(outcome.ok).toBe(true);
    expect(rig.dialled).toEqual([V6[0], V4[0]]);
    expect(outcome.timings.connectMs).toBeGreaterThanOrEqual(240);
    expect(outcome.timings.connectMs).toBeLessThan(5_000);
    // The one that serves rests in the pool; the one that lost is gone.
    expect(rig.transport.sockets()).toBe(1);
  });

  it("W9 all of them together take no longer than the connect timeout", async () => {
    await using hole = await openBlackHole();
    await using origin = await startOrigin();
    await using rig = createRig(origin, { ...leading([...V4], {}, hole.port), limits: { connectTimeoutMs: 800 } });
    const { outcome } = await rig.get(URL_A);
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECT_TIMEOUT", disposition: "RETRY" },
    });
    expect(rig.dialled).toEqual([...V4]);
    expect(outcome.timings.connectMs).toBeGreaterThanOrEqual(790);
    expect(outcome.timings.connectMs).toBeLessThan(2_000);
    expect(rig.transport.sockets()).toBe(0);
  });

  it("J6 an abort destroys all that are being dialled", async () => {
    await using hole = await openBlackHole();
    await using origin = await startOrigin();
    await using rig = createRig(origin, leading([V4[0], V4[1]], {}, hole.port));
    const caller = new AbortController();
    const fetching = rig.get(URL_A, {}, caller.signal);
    await expect.poll(() => rig.dialled.length).toBe(2);
    expect(rig.transport.sockets()).toBe(2);
    caller.abort();
    expect((await fetching).outcome).toMatchObject({ aborted: true, sent: false });
    expect(rig.transport.sockets()).toBe(0);
  });

  // A handshake across an ocean takes longer than 250 ms: that must not double it.
  it("W6 one that has connected is not overtaken while its handshake has time left", async () => {
    const { key, cert } = readTlsFixture("origin");
    await using origin = await startOrigin({
      paths: { "/a": page("a") },
      tls: {
        key,
        cert,
        SNICallback(_name, callback) {
          setTimeout(() => callback(null, createSecureContext({ key, cert })), 500);
        },
      },
    });
    const options = leading([V4[0], V4[1]], {}, origin.port);
    await using rig = createRig(origin, { ...options, authorities: [readTestAuthority()] });
    expect((await rig.get("https://origin.example.com/a")).outcome.ok).toBe(true);
    expect(rig.dialled).toEqual([V4[0]]);
    expect(origin.connections()).toBe(1);
  });

  it("W6 a certificate that is refused is not asked of the next address", async () => {
    await using origin = await startOrigin({ tls: readTlsFixture("other") });
    const options = leading([V4[0], V4[1]], {}, origin.port);
    await using rig = createRig(origin, { ...options, authorities: [readTestAuthority()] });
    expect((await rig.get("https://origin.example.com/a")).outcome).toMatchObject({
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL" },
    });
    expect(rig.dialled).toEqual([V4[0]]);
  });
});
