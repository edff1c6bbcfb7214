import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { TLSSocket } from "node:tls";
import {
  type OriginOptions,
  page,
  readTestAuthority,
  readTlsFixture,
  redirect,
  startOrigin,
  type TlsFixtureName,
} from "@keble-scraper/testkit";
import { afterEach, describe, expect, it, vi } from "vitest";
import { createRig, createStubResolver, PUBLIC_ADDRESS } from "./rig.ts";

const URL_OK = "https://origin.example.com/ok";
const authorities = [readTestAuthority()];

function serve(name: TlsFixtureName, tls: NonNullable<OriginOptions["tls"]> = {}): ReturnType<typeof startOrigin> {
  return startOrigin({ paths: { "/ok": page("hello") }, tls: { ...readTlsFixture(name), ...tls } });
}

describe("TLS", () => {
  it("W6 tls-good: the name goes out as SNI and a body comes back", async () => {
    await using origin = await serve("origin");
    await using rig = createRig(origin, { authorities });
    const { outcome, body } = await rig.get(URL_OK);
    expect(outcome).toMatchObject({ ok: true, response: { httpStatus: 200 } });
    expect(body.toString()).toBe("hello");
    expect(origin.requests[0]).toMatchObject({ serverName: "origin.example.com" });
    expect(origin.requests[0]?.headers["host"]).toBe("origin.example.com");
  });

  it("W6 a trailing dot is neither in SNI nor in Host nor in the verified name", async () => {
    await using origin = await serve("origin");
    await using rig = createRig(origin, { authorities });
    const { outcome } = await rig.get("https://origin.example.com./ok");
    expect(outcome.ok).toBe(true);
    expect(origin.requests[0]).toMatchObject({ serverName: "origin.example.com" });
    expect(origin.requests[0]?.headers["host"]).toBe("origin.example.com");
  });

  it.each([
    ["tls-wrong-name", "other", "ERR_TLS_CERT_ALTNAME_INVALID"],
    ["tls-expired", "expired", "CERT_HAS_EXPIRED"],
    ["tls-not-yet-valid", "not-yet-valid", "CERT_NOT_YET_VALID"],
    ["tls-self-signed", "self-signed", "DEPTH_ZERO_SELF_SIGNED_CERT"],
    ["tls-name-for-an-address", "address", "ERR_TLS_CERT_ALTNAME_INVALID"],
  ] as const)("W6 %s is refused before a request is sent", async (_id, certificate, nativeCode) => {
    await using origin = await serve(certificate);
    await using rig = createRig(origin, { authorities });
    const { outcome } = await rig.get(URL_OK);
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL", nativeCode },
    });
    expect(origin.requests).toEqual([]);
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W6 tls-unknown-authority is refused", async () => {
    await using origin = await serve("origin");
    await using rig = createRig(origin);
    const { outcome } = await rig.get(URL_OK);
    expect(outcome).toMatchObject({ ok: false, failure: { code: "TLS_FAILURE", disposition: "TERMINAL" } });
  });

  it("W6 an address literal's certificate must carry the address, and no name is sent", async () => {
    await using rightly = await serve("address");
    await using wrongly = await serve("origin");
    for (const [origin, ok] of [
      [rightly, true],
      [wrongly, false],
    ] as const) {
      await using rig = createRig(origin, { authorities });
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
    await using rig = createRig(origin, { authorities });
    const { outcome } = await rig.get("https://origin.example.com/start");
    expect(outcome).toMatchObject({
      ok: false,
      sent: true,
      failure: { code: "TLS_FAILURE", nativeCode: "ERR_TLS_CERT_ALTNAME_INVALID" },
    });
    expect(origin.requests.length).toBe(1);
  });

  it("W6 redir-downgrade: a redirect to http is followed, without the caller's headers", async () => {
    await using secure = await startOrigin({
      paths: { "/start": redirect("http://origin.example.com/ok") },
      tls: readTlsFixture("origin"),
    });
    await using plain = await startOrigin({ paths: { "/ok": page("landed") } });
    await using rig = createRig(secure, {
      authorities,
      dial: (_address, port) => ({ host: "127.0.0.1", port: port === 443 ? secure.port : plain.port }),
    });
    const { outcome, body } = await rig.get("https://origin.example.com/start", { headers: { referer: "https://x/" } });
    expect(outcome).toMatchObject({ ok: true, response: { finalUrl: "http://origin.example.com/ok" } });
    expect(body.toString()).toBe("landed");
    expect(secure.requests[0]?.headers["referer"]).toBe("https://x/");
    expect(plain.requests[0]?.headers).not.toHaveProperty("referer");
  });

  it("W6 no TLS session is resumed: a resumed one would not verify the name again", async () => {
    let resumed = 0;
    await using origin = await startOrigin({
      paths: { "/ok": (reply) => reply.send({ headers: { Connection: "close" }, body: "hello" }) },
      tls: readTlsFixture("origin"),
      onConnection(socket) {
        if (socket instanceof TLSSocket && socket.isSessionReused()) resumed += 1;
        return "SERVE";
      },
    });
    await using rig = createRig(origin, { authorities });
    for (let round = 0; round < 3; round += 1) expect((await rig.get(URL_OK)).outcome.ok).toBe(true);
    expect(origin.connections()).toBe(3);
    expect(resumed).toBe(0);
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
    await using rig = createRig(origin, { authorities });
    const { outcome } = await rig.get(URL_OK);
    expect(outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL", nativeCode },
    });
  });

  it("tls-plaintext-port is a terminal TLS_FAILURE", async () => {
    await using origin = await startOrigin({
      onConnection(socket) {
        socket.write("HTTP/1.1 400 Bad Request\r\n\r\n");
        return "TAKEN";
      },
    });
    await using rig = createRig(origin, { authorities });
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      failure: { code: "TLS_FAILURE", disposition: "TERMINAL" },
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
    await using rig = createRig(origin, { authorities });
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "TLS_FAILURE", disposition: "RETRY" },
    });
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 tls-stall: the connect timeout covers the handshake", async () => {
    await using origin = await startOrigin({ onConnection: () => "TAKEN" });
    await using rig = createRig(origin, { authorities, limits: { connectTimeoutMs: 200 } });
    const startedAt = performance.now();
    const { outcome } = await rig.get(URL_OK);
    expect(performance.now() - startedAt).toBeLessThan(3_000);
    expect(outcome).toMatchObject({ ok: false, failure: { code: "CONNECT_TIMEOUT", disposition: "RETRY" } });
    await origin.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 an address that stalls takes only its share of the connect timeout", async () => {
    await using stalled = await startOrigin({ onConnection: () => "TAKEN" });
    await using origin = await serve("origin");
    await using rig = createRig(origin, {
      authorities,
      limits: { connectTimeoutMs: 2_000 },
      resolver: createStubResolver({ "origin.example.com": ["93.184.216.34", "93.184.216.35"] }),
      dial: (address) => ({ host: "127.0.0.1", port: address.endsWith("34") ? stalled.port : origin.port }),
    });
    const { outcome } = await rig.get(URL_OK);
    expect(outcome.ok).toBe(true);
    expect(rig.dialled).toEqual(["93.184.216.34", "93.184.216.35"]);
  });

  it("connect-refused is worth a retry", async () => {
    await using origin = await serve("origin");
    const closed = createTcpServer();
    await new Promise<void>((resolve) => closed.listen(0, "127.0.0.1", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    await using rig = createRig(origin, { dial: () => ({ host: "127.0.0.1", port }) });
    expect((await rig.get(URL_OK)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECT_FAILURE", disposition: "RETRY", nativeCode: "ECONNREFUSED" },
    });
  });

  it("W9 an endless body over TLS is cut like any other", async () => {
    await using origin = await startOrigin({
      paths: {
        "/ok": async (reply) => {
          await reply.write("HTTP/1.1 200 OK\r\n\r\n");
          while (!reply.isClosed()) await reply.write(Buffer.alloc(65_536));
        },
      },
      tls: readTlsFixture("origin"),
    });
    await using rig = createRig(origin, { authorities });
    expect((await rig.get(URL_OK)).outcome).toMatchObject({ ok: false, failure: { code: "BODY_TOO_LARGE" } });
    await origin.allClosed();
  });

  describe("with the environment against it", () => {
    afterEach(() => {
      vi.unstubAllEnvs();
    });

    it("W6 NODE_TLS_REJECT_UNAUTHORIZED changes nothing", async () => {
      vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
      await using origin = await serve("self-signed");
      await using rig = createRig(origin);
      expect((await rig.get(URL_OK)).outcome).toMatchObject({ ok: false, failure: { code: "TLS_FAILURE" } });
    });
  });
});
