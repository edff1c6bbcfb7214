import { startConnectProxy, startOrigin } from "@keble-scraper/testkit";
import { describe, it, expect } from "vitest";
import { ANSWERS, expectRow, isTimed, LANDINGS, ORIGIN_ROWS } from "./origin-rows.ts";
import { createProxyRig } from "./proxy-rig.ts";
import { createStubResolver, SHORT_LIMITS } from "./rig.ts";

describe("what an origin may do to a fetch through a proxy", () => {
  for (const [invariant, id, behaviour, expected, overrides = {}] of ORIGIN_ROWS) {
    it(`${invariant} ${id}`, async () => {
      await using origin = await startOrigin({ paths: { ...LANDINGS, "/start": behaviour } });
      await using proxy = await startConnectProxy({ to: origin.port });
      await using rig = createProxyRig(proxy, {
        resolver: createStubResolver(ANSWERS),
        limits: isTimed(expected) ? SHORT_LIMITS : {},
      });
      const fetched = await rig.get("http://origin.example.com/start", overrides);
      expectRow(fetched, expected);
      expect(fetched.outcome.usage.socketBytes).toBeGreaterThan(0);
      await proxy.allClosed();
      await origin.allClosed();
      expect(rig.transport.sockets()).toBe(0);
    });
  }
});
