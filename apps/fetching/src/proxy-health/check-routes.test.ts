import { type Route, upstreamFailure } from "@keble-scraper/contract";
import { createLogger } from "@keble-scraper/service";
import { describe, expect, test } from "vitest";
import { createRouteCheck, type RouteCheckParts, type StandingQuarantine } from "./check-routes.ts";
import type { SupplierProbe } from "./supplier-probe.ts";

const never = new AbortController().signal;
const quarantineOf = (route: Route, reason = "PROVIDER_AUTH"): StandingQuarantine => ({ route, reason, liftsAt: null });

function createRig(
  standing: readonly StandingQuarantine[],
  probe: SupplierProbe,
  parts: Partial<RouteCheckParts> = {},
) {
  const lines: Record<string, unknown>[] = [];
  const done: string[] = [];
  const check = createRouteCheck({
    probes: new Map(standing.map(({ route }) => [route, probe])),
    list: () => Promise.resolve(standing),
    takeTurn: () => Promise.resolve(true),
    isEndingSoon: () => true,
    prolong: ({ route }, { reason }) => Promise.resolve(void done.push(`prolonged ${route} for ${reason}`)),
    lift: ({ route }) => Promise.resolve(done.push(`lifted ${route}`) > 0),
    probeTimeoutMs: 1_000,
    logger: createLogger({
      name: "test",
      level: "info",
      destination: { write: (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>) },
    }),
    ...parts,
  });
  return { check, lines, done };
}

describe("a round", () => {
  test("is one line a probe: route, reason, what came of it, and the supplier's own code", async () => {
    const failure = upstreamFailure("PROVIDER_PAYMENT", { nativeCode: "client_10020" });
    const { check, lines, done } = createRig([quarantineOf("RESIDENTIAL")], () =>
      Promise.resolve({ ok: false, failure }),
    );
    await check(never);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({
      msg: "route.probed",
      route: "RESIDENTIAL",
      reason: "PROVIDER_AUTH",
      outcome: "PROLONGED",
      code: "PROVIDER_PAYMENT",
      nativeCode: "client_10020",
    });
    expect(done).toEqual(["prolonged RESIDENTIAL for PROVIDER_PAYMENT"]);
  });

  test("O3 a probe that faults leaves no credential in its line", async () => {
    const { check, lines } = createRig([quarantineOf("DATACENTER")], () =>
      Promise.reject(new Error("dial http://brd-customer-CANARY-zone-z:CANARY@proxy:1 with Basic CANARYCANARY")),
    );
    await check(never);
    expect(lines.map(({ msg }) => msg)).toEqual(["probe.faulted", "route.probed"]);
    expect(JSON.stringify(lines)).not.toContain("CANARY");
  });

  test("a route whose rows can't be written harms no other, and the round fails when all are done", async () => {
    const standing = [quarantineOf("DATACENTER"), quarantineOf("UNLOCKER")];
    const { check, done } = createRig(standing, () => Promise.resolve({ ok: true }), {
      takeTurn: ({ route }) => (route === "DATACENTER" ? Promise.reject(new Error("away")) : Promise.resolve(true)),
    });
    await expect(check(never)).rejects.toThrow("some routes could not be checked");
    expect(done).toEqual(["lifted UNLOCKER"]);
  });

  test("W4 a worker that did not get the turn asks nothing", async () => {
    const { check, lines } = createRig([quarantineOf("UNLOCKER")], () => Promise.reject(new Error("asked")), {
      takeTurn: () => Promise.resolve(false),
    });
    await check(never);
    expect(lines).toEqual([]);
  });

  test("O4 a stop ends a question, whose silence is neither written nor logged", async () => {
    const stopper = new AbortController();
    const { check, lines, done } = createRig([quarantineOf("UNLOCKER")], ({ signal }) => {
      stopper.abort();
      expect(signal.aborted).toBe(true);
      return new Promise(() => {});
    });
    await check(stopper.signal);
    expect([lines, done]).toEqual([[], []]);
  });
});
