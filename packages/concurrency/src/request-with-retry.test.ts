import { beforeEach, describe, expect, it, vi } from "vitest";
import { createGatedTransport, seededRandom, settle } from "../test/gated-transport.ts";
import { runInBurstPool } from "./pool-scope.ts";
import {
  isRetryableStatus,
  requestWithRetry,
  RETRY_POLICY,
  type RetryableAnswer,
  type RetryTiming,
  SYSTEM_TIMING,
} from "./request-with-retry.ts";
import { resetPoolsForTests } from "./testing.ts";
import { poolUsage, withPermit } from "./with-permit.ts";

const NOW = Date.UTC(2026, 10, 30, 12);
type Answer = { status: number; headers: Headers };
const answer = (status: number, headers: Record<string, string> = {}): Answer => ({
  status,
  headers: new Headers(headers),
});

function recordedTiming(random: () => number = () => 1 - 2 ** -53): RetryTiming & { sleeps: number[]; draws: number } {
  const timing = {
    sleeps: [] as number[],
    draws: 0,
    now: () => NOW,
    sleep: async (ms: number) => void timing.sleeps.push(ms),
    random: () => ((timing.draws += 1), random()),
  };
  return timing;
}

/** Answers with `answers` in turn, the last one for ever. An Error among them is thrown. */
function scripted(...answers: (Answer | Error)[]) {
  let next = 0;
  return vi.fn(async () => {
    const given = answers[Math.min(next, answers.length - 1)]!;
    next += 1;
    if (given instanceof Error) throw given;
    return given;
  });
}

beforeEach(() => {
  resetPoolsForTests();
});

describe("requestWithRetry", () => {
  it.each([429, 500, 502, 503, 599])("a %d is sent again after one sleep", async (status) => {
    const timing = recordedTiming();
    const send = scripted(answer(status), answer(200));
    expect((await requestWithRetry({ send, timing })).status).toBe(200);
    expect(send).toHaveBeenCalledTimes(2);
    expect(timing.sleeps).toEqual([500]);
  });

  it("a server that stays busy gets three attempts, two sleeps, and its own status is the answer", async () => {
    const timing = recordedTiming();
    const send = scripted(answer(429));
    expect((await requestWithRetry({ send, timing })).status).toBe(429);
    expect(send).toHaveBeenCalledTimes(3);
    expect(timing.sleeps).toEqual([500, 1_000]);
    expect(timing.draws).toBe(2);
  });

  it.each([200, 204, 301, 304, 400, 401, 403, 404, 410, 600])(
    "a %d is an answer: one send, no sleep",
    async (status) => {
      const timing = recordedTiming();
      const send = scripted(answer(status, { "retry-after": "1" }));
      expect((await requestWithRetry({ send, timing })).status).toBe(status);
      expect(send).toHaveBeenCalledTimes(1);
      expect(timing.sleeps).toEqual([]);
    },
  );

  it.each(["timeout", "connect ECONNREFUSED"])("a transport error (%s) is thrown at once", async (message) => {
    const timing = recordedTiming();
    const send = scripted(new Error(message), answer(200));
    await expect(requestWithRetry({ send, timing })).rejects.toThrow(message);
    expect(send).toHaveBeenCalledTimes(1);
    expect(timing.sleeps).toEqual([]);
  });

  it.each([
    [429, "3", 3_000],
    [503, "3", 3_000],
    [429, "9999", 10_000],
    [429, "inf", 10_000],
    [429, "0", 0],
    [429, "-5", 0],
    [429, "Mon, 30 Nov 2026 12:00:04 GMT", 4_000],
  ])("a %d with Retry-After %s sleeps %d ms, without jitter", async (status, retryAfter, sleepMs) => {
    const timing = recordedTiming();
    await requestWithRetry({ send: scripted(answer(status, { "retry-after": retryAfter }), answer(200)), timing });
    expect(timing.sleeps).toEqual([sleepMs]);
    expect(timing.draws).toBe(0);
  });

  it.each(["soon", "0x10", "2099-10-21T07:28:00Z"])("an unreadable Retry-After (%s) is backoff", async (retryAfter) => {
    const timing = recordedTiming();
    await requestWithRetry({ send: scripted(answer(429, { "retry-after": retryAfter }), answer(200)), timing });
    expect(timing.sleeps).toEqual([500]);
    expect(timing.draws).toBe(1);
  });

  it("F3 a Retry-After date is measured from the response's own Date, whatever our clock says", async () => {
    const timing = recordedTiming();
    const skewed = { date: "Mon, 30 Nov 2020 12:00:00 GMT", "retry-after": "Mon, 30 Nov 2020 12:00:07 GMT" };
    await requestWithRetry({ send: scripted(answer(503, skewed), answer(200)), timing });
    expect(timing.sleeps).toEqual([7_000]);
  });

  it("one call never sleeps more than 1.5 s on its own account nor 20 s on the server's", async () => {
    for (const [headers, totalMs] of [
      [{}, 1_500],
      [{ "retry-after": "999999" }, 20_000],
    ] as const) {
      const timing = recordedTiming();
      await requestWithRetry({ send: scripted(answer(503, headers)), timing });
      expect(timing.sleeps.reduce((sum, ms) => sum + ms, 0)).toBe(totalMs);
    }
  });

  it("a hundred callers throttled together come back apart", async () => {
    const timing = recordedTiming(seededRandom(3));
    const one = (): Promise<Answer> => requestWithRetry({ send: scripted(answer(429), answer(200)), timing });
    await Promise.all(Array.from({ length: 100 }, one));
    expect(timing.draws).toBe(100);
    expect(Math.max(...timing.sleeps)).toBeLessThanOrEqual(500);
    expect(new Set(timing.sleeps).size).toBeGreaterThan(60);
    expect(timing.sleeps.filter((ms) => ms < 250).length).toBeGreaterThan(30);
    expect(timing.sleeps.filter((ms) => ms >= 250).length).toBeGreaterThan(30);
  });

  it("nobody holds a permit while sleeping: an eleventh call starts at once", async () => {
    const sleeping: (() => void)[] = [];
    const timing: RetryTiming = {
      ...SYSTEM_TIMING,
      sleep: () => new Promise((resolve) => void sleeping.push(resolve)),
    };
    const busy = Array.from({ length: 10 }, () =>
      requestWithRetry({ send: scripted(answer(429, { "retry-after": "5" }), answer(200)), timing }),
    );
    await settle();
    expect(sleeping).toHaveLength(10);
    expect(poolUsage().DEFAULT).toEqual({ width: 10, free: 10, waiting: 0 });
    expect(await withPermit(async () => "at once")).toBe("at once");
    for (const wake of sleeping) wake();
    await Promise.all(busy);
  });

  it("every attempt takes a permit of its own, from the pool of its context", async () => {
    const transport = createGatedTransport();
    const calls = runInBurstPool(() =>
      Array.from({ length: 30 }, (_, index) => {
        let attempt = 0;
        const send = async (): Promise<Answer> => {
          await transport.send(index);
          attempt += 1;
          return answer(attempt < 3 ? 503 : 200);
        };
        return requestWithRetry({ send, timing: recordedTiming() });
      }),
    );
    await transport.drain();
    expect((await Promise.all(calls)).every(({ status }) => status === 200)).toBe(true);
    expect(transport.sent).toHaveLength(90);
    expect(transport.peak).toBe(25);
    expect(transport.sent.every(({ pool }) => pool === "BURST")).toBe(true);
  });

  it("reports every retryable answer, also one that a retry absorbs", async () => {
    const answers: RetryableAnswer[] = [];
    const send = scripted(answer(429, { "retry-after": "60" }), answer(500), answer(503));
    await requestWithRetry({ send, timing: recordedTiming(), onRetryable: (seen) => answers.push(seen) });
    expect(answers).toEqual([
      { status: 429, pool: "DEFAULT", attempt: 1, attemptsLeft: 2, retryAfterMs: 60_000, waitMs: 10_000 },
      { status: 500, pool: "DEFAULT", attempt: 2, attemptsLeft: 1, retryAfterMs: null, waitMs: 1_000 },
      { status: 503, pool: "DEFAULT", attempt: 3, attemptsLeft: 0, retryAfterMs: null, waitMs: null },
    ]);
  });

  it("leaves both pools whole after every kind of end", async () => {
    const timing = recordedTiming();
    const kinds = [answer(200), answer(404), answer(400), answer(429), answer(500), new Error("timeout")];
    await Promise.allSettled(kinds.map((kind) => requestWithRetry({ send: scripted(kind), timing })));
    await Promise.allSettled(
      runInBurstPool(() => kinds.map((kind) => requestWithRetry({ send: scripted(kind), timing }))),
    );
    expect(poolUsage()).toEqual({
      DEFAULT: { width: 10, free: 10, waiting: 0 },
      BURST: { width: 25, free: 25, waiting: 0 },
    });
  });
});

describe("an abort", () => {
  it("ends the sleep at once with its own reason and leaves no timer", async () => {
    vi.useFakeTimers();
    try {
      const abort = new AbortController();
      const slept = SYSTEM_TIMING.sleep(10_000, abort.signal);
      abort.abort(new Error("deadline"));
      await expect(slept).rejects.toThrow("deadline");
    } finally {
      vi.useRealTimers();
    }
    const abort = new AbortController();
    const send = scripted(answer(429, { "retry-after": "10" }), answer(200));
    const call = requestWithRetry({ send, timing: SYSTEM_TIMING, signal: abort.signal });
    await settle();
    expect(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length).toBeGreaterThan(0);
    const before = process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    abort.abort(new Error("given up"));
    await expect(call).rejects.toThrow("given up");
    expect(process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length).toBe(before - 1);
    expect(send).toHaveBeenCalledTimes(1);
  });

  it("between attempts sends nothing more", async () => {
    const abort = new AbortController();
    const timing = { ...recordedTiming(), sleep: async () => abort.abort(new Error("gone")) };
    const send = scripted(answer(503), answer(200));
    await expect(requestWithRetry({ send, timing, signal: abort.signal })).rejects.toThrow("gone");
    expect(send).toHaveBeenCalledTimes(1);
  });
});

it.each([
  [429, true],
  [500, true],
  [503, true],
  [599, true],
  [404, false],
  [400, false],
  [403, false],
  [499, false],
  [600, false],
])("status %d is retryable: %s", (status, retryable) => {
  expect(isRetryableStatus(status)).toBe(retryable);
});

it("the policy is the seed's", () => {
  expect(RETRY_POLICY).toEqual({ attemptsMax: 3, baseMs: 500, factor: 2, ceilingMs: 8_000, retryAfterMsMax: 10_000 });
});
