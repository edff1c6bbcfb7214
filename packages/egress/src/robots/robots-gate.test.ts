import { upstreamFailure } from "@keble-scraper/contract";
import { describe, expect, test } from "vitest";
import { vetUrl, type VettedUrl } from "../policy/vet-url.ts";
import { ADMIT_ALL } from "../transport/admission.ts";
import { createSocketMeter } from "../transport/socket-meter.ts";
import { createRobotsGate, type FetchRobots, type RobotsGateOptions, type RobotsFetched } from "./robots-gate.ts";

const never = {
  signal: new AbortController().signal,
  admit: ADMIT_ALL,
  meter: null,
  egress: { country: null, session: null },
};

function vetted(url: string): VettedUrl {
  const result = vetUrl(url);
  if (!result.ok) throw new Error(result.reason);
  return result.url;
}

function response(httpStatus: number, text = ""): RobotsFetched {
  return { kind: "ANSWERED", response: { httpStatus, body: Buffer.from(text) } };
}

/** A gate over a fetch that gives one answer to all; `fetched` lists the URLs it was asked for. */
function openGate(answer: RobotsFetched, options: Partial<RobotsGateOptions> = {}) {
  const fetched: string[] = [];
  const fetchRobots: FetchRobots = (url) => {
    fetched.push(url.href);
    return Promise.resolve(answer);
  };
  const gate = createRobotsGate({ fetchRobots, productToken: "keble-scraper", cacheMaxEntries: 100, ...options });
  return { fetched, check: (url: string) => gate.check(vetted(url), never) };
}

/** A gate over a fetch that waits to be answered. */
function openHeldGate() {
  const requests: {
    signal: AbortSignal;
    answer: (outcome: RobotsFetched) => void;
    fail: (error: Error) => void;
  }[] = [];
  const fetchRobots: FetchRobots = (_url, { signal }) =>
    new Promise((resolve, reject) => {
      requests.push({ signal, answer: resolve, fail: reject });
      signal.addEventListener("abort", () => reject(signal.reason as Error));
    });
  const gate = createRobotsGate({ fetchRobots, productToken: "keble-scraper", cacheMaxEntries: 100 });
  return { requests, gate };
}

describe("verdicts", () => {
  test("rules are asked for at the origin's robots.txt and decide by path and query", async () => {
    const { fetched, check } = openGate(response(200, "User-agent: *\nDisallow: /private\nDisallow: /*?x=1"));
    expect(await check("https://example.com:8443/private/1")).toEqual({ kind: "DISALLOWED" });
    expect(await check("https://example.com:8443/a?x=1")).toEqual({ kind: "DISALLOWED" });
    expect(await check("https://example.com:8443/a?x=2")).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
    expect(fetched).toEqual(["https://example.com:8443/robots.txt"]);
  });

  test.each([204, 302, 304, 400, 401, 403, 404, 410, 451])(
    "a robots.txt answered by %i forbids nothing",
    async (status) => {
      const { check } = openGate(response(status, "User-agent: *\nDisallow: /"));
      expect(await check("https://example.com/x")).toMatchObject({ kind: status === 204 ? "DISALLOWED" : "ALLOWED" });
    },
  );

  test.each([600, 999])(
    "a robots.txt answered by %i, which is no status of HTTP's, forbids for now",
    async (status) => {
      const { check } = openGate(response(status));
      expect(await check("https://example.com/x")).toMatchObject({
        kind: "FAILED",
        failure: { kind: "UPSTREAM", code: "HTTP_SERVER_ERROR", disposition: "RETRY", httpStatus: status },
      });
    },
  );

  test("a robots fetch that failed keeps its own code, and is tried again by the next job", async () => {
    const failure = upstreamFailure("CONNECT_TIMEOUT");
    const { fetched, check } = openGate({ kind: "FAILED", failure });
    expect(await check("https://example.com/x")).toEqual({ kind: "FAILED", failure });
    expect(await check("https://example.com/x")).toEqual({ kind: "FAILED", failure });
    expect(fetched).toHaveLength(2);
  });
});

describe("crawl delay", () => {
  test("W2 what the rules ask comes with every verdict, remembered or not", async () => {
    const { fetched, check } = openGate(response(200, "User-agent: *\nCrawl-delay: 2.5"));
    for (let round = 0; round < 2; round += 1) {
      expect(await check("https://example.com/a")).toEqual({ kind: "ALLOWED", crawlDelayMs: 2_500 });
    }
    expect(fetched).toHaveLength(1);
  });

  test("W2 what a page that isn't there says is no delay", async () => {
    const { check } = openGate(response(404, "User-agent: *\nCrawl-delay: 2.5"));
    expect(await check("https://example.com/a")).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });
});

describe("waiting for the file", () => {
  const wait = { kind: "WAIT", wait: { horizonMs: 7_000, dueMs: 1_000 } } as const;

  test("W2 a wait is shared by all who asked, and not remembered", async () => {
    const { requests, gate } = openHeldGate();
    const url = vetted("https://example.com/a");
    const both = Promise.all([gate.check(url, never), gate.check(url, never)]);
    requests[0]!.answer(wait);
    expect(await both).toEqual([wait, wait]);
    const again = gate.check(url, never);
    expect(requests).toHaveLength(2);
    requests[1]!.answer(response(404));
    expect(await again).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });
});

describe("on a meter", () => {
  const metered = (signal: AbortSignal) => ({ ...never, signal, meter: createSocketMeter(1_000_000) });

  test("W3 the fetch ends with the attempt that pays for it, and another begins it again on its own", async () => {
    const { requests, gate } = openHeldGate();
    const url = vetted("https://example.com/a");
    const [payer, other] = [new AbortController(), new AbortController()];
    const paid = gate.check(url, metered(payer.signal));
    const shared = gate.check(url, metered(other.signal));
    expect(requests).toHaveLength(1);
    payer.abort(new Error("gone"));
    await expect(paid).rejects.toThrow("gone");
    expect(requests[0]!.signal.aborted).toBe(true);
    await expect.poll(() => requests.length).toBe(2);
    requests[1]!.answer(response(404));
    expect(await shared).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });

  test("W3 the one who shares leaves without ending it", async () => {
    const { requests, gate } = openHeldGate();
    const url = vetted("https://example.com/a");
    const [payer, other] = [new AbortController(), new AbortController()];
    const paid = gate.check(url, metered(payer.signal));
    const shared = gate.check(url, metered(other.signal));
    other.abort(new Error("gone"));
    await expect(shared).rejects.toThrow("gone");
    expect(requests[0]!.signal.aborted).toBe(false);
    requests[0]!.answer(response(404));
    expect(await paid).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });
});

describe("memory", () => {
  test("each origin has its own rules", async () => {
    const { fetched, check } = openGate(response(404));
    for (const url of [
      "http://example.com/",
      "https://example.com/",
      "https://example.com:8443/",
      "https://example.com/b",
    ]) {
      await check(url);
    }
    expect(fetched).toHaveLength(3);
  });

  test("rules are believed for 24 hours at most, whatever the setting", async () => {
    let nowMs = 1;
    const { fetched, check } = openGate(response(404), { now: () => nowMs, ttlMs: 7 * 86_400_000 });
    await check("https://example.com/");
    nowMs += 86_400_000 - 1;
    await check("https://example.com/");
    expect(fetched).toHaveLength(1);
    nowMs += 2;
    await check("https://example.com/");
    expect(fetched).toHaveLength(2);
  });

  test("the number of origins that are remembered is bounded", async () => {
    const { fetched, check } = openGate(response(404), { cacheMaxEntries: 2 });
    for (const host of ["a", "b", "c", "b", "a"]) await check(`https://${host}.example.com/`);
    expect(fetched.map((url) => url.slice(8, 9))).toEqual(["a", "b", "c", "a"]);
  });
});

describe("one request per origin", () => {
  test("callers at the same time share it", async () => {
    const { requests, gate } = openHeldGate();
    const urls = ["/a", "/b", "/c"].map((path) => vetted(`https://example.com${path}`));
    const verdicts = Promise.all(urls.map((url) => gate.check(url, never)));
    expect(requests).toHaveLength(1);
    requests[0]!.answer(response(200, "User-agent: *\nDisallow: /b"));
    expect((await verdicts).map(({ kind }) => kind)).toEqual(["ALLOWED", "DISALLOWED", "ALLOWED"]);
  });

  test("one caller's abort ends its own wait only; the last one's ends the request", async () => {
    const { requests, gate } = openHeldGate();
    const url = vetted("https://example.com/a");
    const [first, second] = [new AbortController(), new AbortController()];
    const early = gate.check(url, { ...never, signal: first.signal });
    const late = gate.check(url, { ...never, signal: second.signal });
    first.abort(new Error("first"));
    await expect(early).rejects.toThrow("first");
    expect(requests[0]!.signal.aborted).toBe(false);
    second.abort(new Error("second"));
    await expect(late).rejects.toThrow("second");
    expect(requests[0]!.signal.aborted).toBe(true);
    const again = gate.check(url, never);
    expect(requests).toHaveLength(2);
    requests[1]!.answer(response(404));
    expect(await again).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });

  test("a fault reaches every caller and leaves nothing behind", async () => {
    const { requests, gate } = openHeldGate();
    const url = vetted("https://example.com/a");
    const both = Promise.allSettled([gate.check(url, never), gate.check(url, never)]);
    requests[0]!.fail(new Error("bug"));
    expect((await both).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
    const again = gate.check(url, never);
    requests[1]!.answer(response(404));
    expect(await again).toEqual({ kind: "ALLOWED", crawlDelayMs: null });
  });

  test("an aborted caller asks for nothing", async () => {
    const { requests, gate } = openHeldGate();
    await expect(
      gate.check(vetted("https://example.com/"), { ...never, signal: AbortSignal.abort(new Error("late")) }),
    ).rejects.toThrow("late");
    expect(requests).toHaveLength(0);
  });
});
