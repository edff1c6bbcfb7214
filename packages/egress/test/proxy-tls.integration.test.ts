import {
  type OriginOptions,
  page,
  readTestAuthority,
  readTlsFixture,
  redirect,
  startOrigin,
  type TlsFixtureName,
} from "@keble-scraper/testkit";
import { describe, expect, it, vi } from "vitest";
import { createProxyRig, startZone } from "./proxy-rig.ts";
import { PUBLIC_ADDRESS } from "./rig.ts";

const URL_OK = "https://origin.example.com/ok";

function serve(name: TlsFixtureName, tls: NonNullable<OriginOptions["tls"]> = {}): ReturnType<typeof startOrigin> {
  return startOrigin({ paths: { "/ok": page("hello") }, tls: { ...readTlsFixture(name), ...tls } });
}

describe("TLS inside a tunnel", () => {
  it.each([
    ["tls-wrong-name", "other", "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["tls-expired", "expired", "CERT_HAS_EXPIRED"],
    ["tls-not-yet-valid", "not-yet-valid", "CERT_NOT_YET_VALID"],
    ["tls-self-signed", "self-signed", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["tls-name-for-an-address", "address", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ] as const)("W6 %s is refused before a request is sent", async (_id, certificate, nativeCode) => {
    await using origin = await serve(certificate);
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    const { outcome } = await rig.get(URL_OK);
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", origin: "TARGET", disposition: "TERMINAL", nativeCode },
    });
    expect(outcome.usage.socketBytes).toBeGreaterThan(1_000);
    expect(origin.requests).toEqual([]);
    await proxy.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it.each<[string, string, NonNullable<OriginOptions["tls"]>]>([
    [
      "tls-1.1-only",
      "ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION",
      { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT:@SECLEVEL=0" },
    ],
    ["tls-h2-only", "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL", { ALPNProtocols: ["h2"] }],
  ])("%s is a terminal TLS_FAILURE", async (_id, nativeCode, tls) => {
    await using origin = await serve("origin", tls);
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL", nativeCode },
    });
  });

  it.each([
    ["tls-sni-reject", "RESET"],
    ["tls-fin", "END"],
  ] as const)("%s: a peer that just closes in the handshake is worth a retry", async (_id, how) => {
    await using origin = await startOrigin({
      onConnection(socket) {
        socket.once("data", () => {
          if (how === "RESET") socket.resetAndDestroy();
          else socket.end();
        });
        return "TAKEN";
      },
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", origin: "TARGET", disposition: "RETRY" },
    });
    await proxy.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 tls-stall: the connect timeout covers tunnel and handshake, and blames the target", async () => {
    await using origin = await startOrigin({ onConnection: () => "TAKEN" });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy, { limits: { connectTimeoutMs: 250 } });
    const startedAt = performance.now();
    const { outcome } = await rig.get(URL_OK);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(outcome).toMatchObject({ failure: { code: "CONNECT_TIMEOUT", origin: "TARGET", disposition: "RETRY" } });
    await proxy.allClosed();
    await origin.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W6 an address literal's certificate must carry the address, and no name is sent", async () => {
    await using rightly = await serve("address");
    await using wrongly = await serve("origin");
    for (const [origin, ok] of [
      [rightly, true],
      [wrongly, false],
    ] as const) {
      await using proxy = await startZone(origin);
      await using rig = createProxyRig(proxy);
      expect((await rig.get(`https://${PUBLIC_ADDRESS}/ok`)).outcome.ok).toBe(ok);
    }
    expect(rightly.requests[0]?.serverName).toBeNull();
    expect(wrongly.requests).toEqual([]);
  });

  it("W6 a redirect to another name on the same address verifies that name", async () => {
    await using origin = await startOrigin({
      paths: { "/start": redirect("https://other.example.com/ok"), "/ok": page("hello") },
      tls: readTlsFixture("origin"),
    });
    await using proxy = await startZone(origin);
    await using rig = createProxyRig(proxy);
    expect((await rig.get("https://origin.example.com/start")).outcome).toMatchObject({
      ok: false,
      sent: true,
      failure: { code: "TLS_FAILURE", nativeCode: "ERR_TLS_CERT_ALTNAME_INVALID" },
    });
    expect(origin.requests.length).toBe(1);
  });

  it("W6 the provider's authority is trusted beside the others, and only where it was configured", async () => {
    await using origin = await serve("origin");
    await using proxy = await startZone(origin);
    await using without = createProxyRig(proxy, { authorities: null });
    expect((await without.get(URL_OK)).outcome).toMatchObject({ ok: false, failure: { code: "TLS_FAILURE" } });
    await using withIt = createProxyRig(proxy, { authorities: null, route: { authorities: [readTestAuthority()] } });
    expect((await withIt.get(URL_OK)).outcome.ok).toBe(true);
  });

  it("W6 NODE_TLS_REJECT_UNAUTHORIZED changes nothing", async () => {
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    try {
      await using origin = await serve("self-signed");
      await using proxy = await startZone(origin);
      await using rig = createProxyRig(proxy);
      expect((await rig.get(URL_OK)).outcome).toMatchObject({ ok: false, failure: { code: "TLS_FAILURE" } });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
