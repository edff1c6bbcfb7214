import { startCloudflareApi, startUnlockerApi } from "@keble-scraper/testkit";
import { describe, expect, it } from "vitest";
import type { AdmitHop } from "../src/index.ts";
import { createCloudflareRig, createUnlockerRig, PAGE, watching } from "./providers-rig.ts";

const ROBOTS = "https://shop.example.com/robots.txt";
const RESPECT = { robots: "RESPECT" } as const;
const DOM = '<html><head><title>Shop</title></head><body>caf\u00e9 \u{1f600} "quoted"\n\t\\ </body></html>';

describe("UNLOCKER: robots.txt", () => {
  it("J3 its own hop that has to wait gives the attempt back before anything is sent", async () => {
    await using api = await startUnlockerApi();
    await using rig = createUnlockerRig(api);
    const wait = { horizonMs: 9_000, dueMs: 9_500 };
    const admit: AdmitHop = () => Promise.resolve({ kind: "WAIT", wait });
    const { outcome } = await rig.get(PAGE, RESPECT, { admit });
    expect(outcome).toMatchObject({ ok: false, aborted: true, wait, sent: false, usage: { requests: 0 } });
    expect(api.calls.length).toBe(0);
  });

  it("J6 an abort while it is fetched closes its socket; the request it made may be billed", async () => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: { script: "HANG" } } });
    await using rig = createUnlockerRig(api);
    const controller = new AbortController();
    const fetching = rig.get(PAGE, RESPECT, { signal: controller.signal });
    await api.call(1);
    controller.abort();
    expect((await fetching).outcome).toMatchObject({
      ok: false,
      aborted: true,
      sent: false,
      usage: { requests: 1, isBilled: null },
    });
    await api.allClosed();
    expect(rig.transport.sockets()).toBe(0);
  });

  it("W9 one that hangs is the provider's timeout", async () => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: { script: "HANG" } } });
    await using rig = createUnlockerRig(api, { limits: { robotsTimeoutMs: 300 } });
    expect((await rig.get(PAGE, RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "RESPONSE_TIMEOUT", origin: "PAID_EGRESS" },
      usage: { requests: 1, isBilled: null },
    });
    await api.allClosed();
  });

  it("comes by the same API, once per origin, and is one more request of the attempt that began it", async () => {
    await using api = await startUnlockerApi({
      answers: {
        [ROBOTS]: { page: { body: "User-agent: *\nDisallow: /private\n" } },
        [PAGE]: { page: { body: "hello" } },
      },
    });
    await using rig = createUnlockerRig(api);
    const { admit, hops, done } = watching();
    const { outcome: first } = await rig.get(PAGE, RESPECT, { admit });
    expect(first).toMatchObject({ ok: true, usage: { requests: 2, isBilled: true, providerRequestId: "req-2" } });
    expect(hops.map(({ url, purpose }) => [url.href, purpose])).toEqual([
      [ROBOTS, "ROBOTS"],
      [PAGE, "PAGE"],
    ]);
    expect(done()).toBe(2);
    expect((await rig.get(PAGE, RESPECT)).outcome).toMatchObject({ ok: true, usage: { requests: 1 } });
    expect((await rig.get("https://shop.example.com/private", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" },
      usage: { requests: 0 },
    });
    expect(api.requests.map(({ url }) => url)).toEqual([ROBOTS, PAGE, PAGE]);
  });

  it.each([
    ["that is absent forbids nothing", { page: { status: 404 } }, true],
    ["that is empty forbids nothing", { page: { isBilled: null } }, true],
    [
      "that the provider refuses ends the attempt with that failure",
      { refusal: { code: "policy_20050", status: 403 } },
      false,
    ],
  ] as const)("%s", async (_what, answer, isOk) => {
    await using api = await startUnlockerApi({ answers: { [ROBOTS]: answer, [PAGE]: { page: { body: "hello" } } } });
    await using rig = createUnlockerRig(api);
    const { outcome } = await rig.get(PAGE, RESPECT);
    expect(outcome.ok).toBe(isOk);
    if (!isOk) expect(outcome).toMatchObject({ sent: false, failure: { code: "PROVIDER_POLICY" } });
  });

  it("one fetch of it serves all who ask at the same time, and one of them pays", async () => {
    await using api = await startUnlockerApi({
      answers: { [ROBOTS]: { page: { body: "User-agent: *\n" } }, [PAGE]: { page: { body: "hello" } } },
    });
    await using rig = createUnlockerRig(api);
    const outcomes = await Promise.all(Array.from({ length: 10 }, () => rig.get(PAGE, RESPECT)));
    const paid = outcomes.map(({ outcome }) => outcome.usage.requests);
    expect(paid.toSorted((a, b) => a - b)).toEqual([...Array.from({ length: 9 }, () => 1), 2]);
    expect(api.requests.filter(({ url }) => url === ROBOTS).length).toBe(1);
  });
});
describe("CLOUDFLARE_RENDER: robots.txt", () => {
  it("comes by the same API out of Chrome's own page, and its browser time is the attempt's that began it", async () => {
    await using api = await startCloudflareApi({
      answers: {
        [ROBOTS]: { page: { text: "# a < b & c > d\nUser-agent: *\nDisallow: /private\n", browserMs: 100 } },
        [PAGE]: { page: { html: DOM, browserMs: 200 } },
      },
    });
    await using rig = createCloudflareRig(api);
    const { admit, hops } = watching();
    expect((await rig.get(PAGE, { ...RESPECT, capture: "PDF" }, { admit })).outcome).toMatchObject({
      ok: true,
      usage: { browserMs: 300 },
    });
    expect(hops.map(({ url, purpose }) => [url.href, purpose])).toEqual([
      [ROBOTS, "ROBOTS"],
      [PAGE, "PAGE"],
    ]);
    expect((await rig.get("https://shop.example.com/private", RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { kind: "LOCAL", code: "ROBOTS_DISALLOWED" },
      usage: { browserMs: 0 },
    });
    expect(api.renders.map(({ endpoint, url }) => `${endpoint} ${url}`)).toEqual([`content ${ROBOTS}`, `pdf ${PAGE}`]);
  });

  it("that is absent forbids nothing; one that can't be had ends the attempt with its own failure", async () => {
    await using api = await startCloudflareApi({
      answers: { [ROBOTS]: { page: { html: "<p>no such page</p>", status: 404 } }, [PAGE]: { page: { html: DOM } } },
    });
    await using rig = createCloudflareRig(api);
    expect((await rig.get(PAGE, RESPECT)).outcome.ok).toBe(true);
    await using other = createCloudflareRig(api);
    api.on(ROBOTS, { refusal: { code: 5008 } });
    expect((await other.get(PAGE, RESPECT)).outcome).toMatchObject({
      ok: false,
      sent: false,
      failure: { code: "CONNECT_FAILURE", origin: "TARGET" },
    });
  });
});
