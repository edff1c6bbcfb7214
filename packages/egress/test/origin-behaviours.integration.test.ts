import { startOrigin } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import { ANSWERS, expectRow, isTimed, LANDINGS, ORIGIN_ROWS } from "./origin-rows.ts";
import { createRig, createStubResolver, SHORT_LIMITS } from "./rig.ts";

describe("what an origin may do to a fetch", () => {
  for (const [invariant, id, behaviour, expected, overrides = {}] of ORIGIN_ROWS) {
    it(`${invariant} ${id}`, async () => {
      await using origin = await startOrigin({ paths: { ...LANDINGS, "/start": behaviour } });
      await using rig = createRig(origin, {
        resolver: createStubResolver(ANSWERS),
        limits: isTimed(expected) ? SHORT_LIMITS : {},
      });
      expectRow(await rig.get("http://origin.example.com/start", overrides), expected);
      await rig.transport.close(performance.now());
      await origin.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    });
  }

  // A gzip header may carry a file name of any length, which unpacks to nothing: only the wire shows it.
  it("W9 coded bytes are counted before they are decoded", async () => {
    const header = Buffer.from([0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3]);
    await using origin = await startOrigin({
      paths: {
        "/start": async (reply) => {
          await reply.write("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n");
          await reply.write(header);
          while (!reply.isClosed()) await reply.write(Buffer.alloc(65_536, "n"));
        },
      },
    });
    await using rig = createRig(origin);
    const { outcome } = await rig.get("http://origin.example.com/start", { maxBodyBytes: 4_000_000 });
    expect(outcome).toMatchObject({ ok: false, bodyBytes: 0, failure: { code: "BODY_TOO_LARGE" } });
    expect(outcome.ok ? 0 : outcome.wireBytes).toBeLessThan(4_000_000 + 131_072 + 131_072);
  });
});
