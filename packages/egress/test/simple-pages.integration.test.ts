import { ORDINARY_PAGES, startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { createRig } from "./rig.ts";

describe("a direct fetch of an ordinary page", () => {
  it("gives status, headers and body", async () => {
    await using origin = await startOrigin({ paths: ORDINARY_PAGES });
    await using rig = createRig(origin);
    const { outcome, body } = await rig.get("http://origin.example.com/hello.txt");
    expect(body.toString()).toBe("hello");
    expect(outcome).toMatchObject({ ok: true, sent: true, response: { httpStatus: 200, bodyBytes: 5, wireBytes: 5 } });
    expect(origin.requests[0]?.raw.split("\r\n")).toEqual([
      "GET /hello.txt HTTP/1.1",
      "host: origin.example.com",
      "connection: keep-alive",
      "user-agent: KebleScraper/0.1 (self-hosted fetch service)",
      "accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
      "accept-encoding: gzip, br",
    ]);
  });

  it("decodes gzip", async () => {
    await using origin = await startOrigin({ paths: ORDINARY_PAGES });
    await using rig = createRig(origin);
    const { outcome, body } = await rig.get("http://origin.example.com/packed");
    expect(body.toString()).toBe("<!doctype html><title>Packed</title><p>Hello");
    expect(outcome).toMatchObject({ ok: true, response: { bodyBytes: body.length } });
  });

  it("follows a redirect and says so", async () => {
    await using origin = await startOrigin({ paths: ORDINARY_PAGES });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/moved");
    expect(outcome).toMatchObject({
      ok: true,
      response: {
        finalUrl: "http://origin.example.com/hello.txt",
        redirects: [{ url: "http://origin.example.com/moved", httpStatus: 301 }],
      },
    });
  });

  it("W6 uses a connection again for the same caller, host and address", async () => {
    await using origin = await startOrigin({ paths: ORDINARY_PAGES });
    await using rig = createRig(origin);
    for (let round = 0; round < 20; round += 1) {
      const { outcome } = await rig.get("http://origin.example.com/data.json");
      expect(outcome.ok).toBe(true);
      await new Promise(setImmediate);
    }
    expect(origin.connections()).toBe(1);
  });
});
