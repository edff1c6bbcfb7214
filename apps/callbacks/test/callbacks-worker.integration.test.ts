import { randomBytes } from "node:crypto";
import { Job } from "@keble-scraper/contract";
import { createBell, createLogger } from "@keble-scraper/service";
import { createTestSignals, type ReceivedRequest } from "@keble-scraper/testkit";
import { Webhook } from "standardwebhooks";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createSecretBox } from "../src/secret-box.ts";
import { type CallbacksRig, isOver, openCallbacksRig, SERVICE, untilEvent } from "./callbacks-rig.ts";

let rig: CallbacksRig;
/** Where this test's receiver is. */
let path: string;
beforeAll(async () => {
  rig = await openCallbacksRig();
});
beforeEach(() => {
  path = rig.path();
});
afterEach(() => rig.clear());
afterAll(() => rig[Symbol.asyncDispose]());

const here = (request: ReceivedRequest) => request.path === path;

/** A result as a fetch leaves it, with everything in it that JSON can be read differently for. */
const RESULT = {
  httpStatus: 200,
  finalUrl: "https://shop.example.com/p/1",
  redirects: [],
  headers: { "x-emoji": "🙂", "x-line": "a\u2028b", "x-number": "1.0", "x-large": "9007199254740993" },
  contentType: { declared: "text/html", sniffed: "text/html" },
  charset: { declared: "utf-8", detected: "utf-8" },
  route: "DIRECT",
  fetchedAt: "2026-11-30T17:00:00.000Z",
  fromCache: false,
};

function headersOf(request: ReceivedRequest) {
  const names = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const;
  return Object.fromEntries(names.map((name) => [name, request.header(name) ?? ""]));
}

/** What a receiver does: the official library, over the raw bytes. */
function verify(request: ReceivedRequest, secret: string): void {
  new Webhook(secret).verify(request.body, headersOf(request), { jsonParse: false });
}

describe("a delivery", () => {
  it("C3 sends the same id and bytes on every try, signed anew with a newer timestamp, and waits as it is asked", async () => {
    const { name, secret } = await rig.register(path);
    const wait = { status: 503, headers: { "retry-after": "1" } };
    rig.receiver.script(path, [wait, { ...wait, status: 429 }, 204]);
    const { jobId, eventId } = await rig.endJob(name, RESULT);
    await rig.startWorker();
    const tries = await rig.receiver.waitForCount(3, here);
    const event = await untilEvent(rig, eventId, isOver);

    for (const request of tries) {
      verify(request, secret);
      expect(request.method).toBe("POST");
      expect(request.header("content-type")).toBe("application/json");
      expect(request.header("webhook-id")).toBe(eventId);
      expect(request.body.equals(tries[0]!.body)).toBe(true);
    }
    const stamps = tries.map((request) => Number(request.header("webhook-timestamp")));
    expect(stamps[1]).toBeGreaterThan(stamps[0]!);
    expect(stamps[2]).toBeGreaterThan(stamps[1]!);
    expect(Math.abs(stamps[2]! * 1_000 - Date.now())).toBeLessThan(10_000);
    expect(tries[2]!.header("webhook-signature")).not.toBe(tries[0]!.header("webhook-signature"));
    expect(tries[1]!.arrivedAtMs - tries[0]!.arrivedAtMs).toBeGreaterThanOrEqual(990);
    expect(tries[2]!.arrivedAtMs - tries[1]!.arrivedAtMs).toBeGreaterThanOrEqual(990);

    const payload = JSON.parse(tries[0]!.body.toString("utf8")) as { data: { job: Job } };
    expect(payload).toMatchObject({
      id: eventId,
      type: "job.succeeded",
      data: { job: { id: jobId, status: "SUCCEEDED" } },
    });
    expect(Job.parse(payload.data.job).result?.headers).toEqual(RESULT.headers);
    expect(payload).toHaveProperty("occurredAt", payload.data.job.finishedAt);
    expect(event).toMatchObject({
      state: "DELIVERED",
      deliveries: [
        {
          state: "DELIVERED",
          attemptsUsed: 3,
          tries: [
            { outcome: "FAILED", httpStatus: 503, failure: { code: "HTTP_SERVER_ERROR", disposition: "RETRY_AT" } },
            { outcome: "FAILED", httpStatus: 429, failure: { code: "RATE_LIMITED", disposition: "RETRY_AT" } },
            { outcome: "SUCCEEDED", httpStatus: 204, failure: null },
          ],
        },
      ],
    });
  });

  it("C3 signs with all live secrets while they are rotated", async () => {
    const { id, name, secret } = await rig.register(path);
    const newer = randomBytes(32);
    const { keyId, ciphertext } = createSecretBox(rig.settings.secretKey).seal(newer, id);
    await rig.database.commands`
      insert into callback_secrets (id, endpoint_id, key_id, ciphertext) values (uuid_v7(), ${id}, ${keyId}, ${ciphertext})`;
    await rig.endJob(name);
    await rig.startWorker();
    const [request] = await rig.receiver.waitForCount(1, here);
    expect(request!.header("webhook-signature")!.split(" ")).toHaveLength(2);
    verify(request!, secret);
    verify(request!, `whsec_${newer.toString("base64")}`);
    expect(() => verify(request!, `whsec_${randomBytes(32).toString("base64")}`)).toThrow();
  });

  it("W6 a redirect is a failure, and where it leads is never touched", async () => {
    const { name } = await rig.register(path);
    const elsewhere = rig.path();
    const redirect = { status: 302, headers: { location: `${rig.receiver.url}${elsewhere}` } };
    rig.receiver.script(path, [redirect, { ...redirect, status: 307 }, 200]);
    const { eventId } = await rig.endJob(name);
    await rig.startWorker();
    const event = await untilEvent(rig, eventId, isOver);
    expect(event.deliveries[0]!.tries).toMatchObject([
      { outcome: "FAILED", httpStatus: 302, failure: { code: "REDIRECT_FORBIDDEN", disposition: "RETRY" } },
      { outcome: "FAILED", httpStatus: 307 },
      { outcome: "SUCCEEDED", httpStatus: 200 },
    ]);
    expect(rig.received(path)).toHaveLength(3);
    expect(rig.received(elsewhere)).toHaveLength(0);
  });

  it("C3 410 disables the endpoint, ends what waits, and no further request is made", async () => {
    const { id, name } = await rig.register(path, { maxConcurrency: 1 });
    rig.receiver.script(path, [410]);
    const events = [await rig.endJob(name), await rig.endJob(name)];
    const signals = createTestSignals();
    await rig.startWorker({ signals });
    for (const { eventId } of events) {
      const event = await untilEvent(rig, eventId, isOver);
      expect(event).toMatchObject({ state: "DEAD_LETTER", deadLetterReason: "ENDPOINT_DISABLED" });
    }
    const read = await rig.client.getEndpoint.query({ principal: SERVICE, id });
    expect(read).toMatchObject({ ok: true, value: { enabled: false, disabledReason: "GONE" } });
    await rig.endJob(name);
    await signals.reachedTimes("claim.empty", signals.points.filter((point) => point === "claim.empty").length + 2);
    expect(rig.received(path)).toHaveLength(1);
  });

  it("C2 tries as often as the stored budget says, then it is a dead letter", async () => {
    const { name } = await rig.register(path, { attemptBudget: 3 });
    rig.receiver.script(path, [500, "RESET", 404]);
    const { eventId } = await rig.endJob(name);
    await rig.startWorker();
    const event = await untilEvent(rig, eventId, isOver);
    expect(event).toMatchObject({ state: "DEAD_LETTER", deadLetterReason: "BUDGET_SPENT" });
    expect(event.deliveries[0]!.tries).toMatchObject([
      { httpStatus: 500, failure: { code: "HTTP_SERVER_ERROR" } },
      { httpStatus: null, failure: { code: "CONNECTION_RESET", disposition: "RETRY" } },
      { httpStatus: 404, failure: { code: "HTTP_CLIENT_ERROR", disposition: "RETRY" } },
    ]);
    expect(rig.received(path)).toHaveLength(3);
  });

  it("ends a try at the endpoint's timeout, while other endpoints are served", async () => {
    const slow = await rig.register(path, { timeoutMs: 300, attemptBudget: 1 });
    const quick = await rig.register(rig.path());
    rig.receiver.script(path, ["HANG"]);
    const hung = await rig.endJob(slow.name);
    const served = await rig.endJob(quick.name);
    await rig.startWorker();
    await untilEvent(rig, served.eventId, isOver);
    expect(await rig.event(hung.eventId)).toMatchObject({ state: "LEASED" });
    const event = await untilEvent(rig, hung.eventId, isOver);
    expect(event.deliveries[0]!.tries).toMatchObject([{ outcome: "FAILED", failure: { code: "RESPONSE_TIMEOUT" } }]);
    expect(rig.received(path)).toHaveLength(1);
  });

  it("C2 has no more under way at one endpoint than it takes, over all workers, and none idles when one ends", async () => {
    const { name } = await rig.register(path, { maxConcurrency: 2 });
    let open = () => undefined as void;
    const until = new Promise<void>((resolve) => (open = resolve));
    rig.receiver.script(path, [{ status: 200, until }]);
    const events = [];
    for (let count = 0; count < 6; count += 1) events.push(await rig.endJob(name));
    // No poll comes to help: the seventh claim is made because a try ended.
    const polls = { SCRAPER_POLL_INTERVAL_SECONDS: "30" };
    const signals = [createTestSignals(), createTestSignals()];
    await rig.startWorker({ signals: signals[0]! }, polls);
    await rig.startWorker({ signals: signals[1]! }, polls);
    await rig.receiver.waitForCount(2, here);
    await Promise.all(signals.map((one) => one.reached("claim.empty")));
    expect(rig.received(path)).toHaveLength(2);
    open();
    for (const { eventId } of events)
      expect(await untilEvent(rig, eventId, isOver)).toMatchObject({ state: "DELIVERED" });
    expect(rig.received(path)).toHaveLength(6);
  });

  it("is rung for a new event, long before a poll", async () => {
    const signals = createTestSignals();
    await rig.startWorker({ signals }, { SCRAPER_POLL_INTERVAL_SECONDS: "60" });
    await signals.reached("claim.empty");
    const { name } = await rig.register(path);
    const { eventId } = await rig.endJob(name);
    const { redis } = rig.settings;
    const bell = createBell({
      redisUrl: redis.url,
      prefix: redis.prefix,
      logger: createLogger({ name: "t", level: "silent" }),
    });
    await bell.start(new AbortController().signal);
    bell.ring("callbacks", { eventId });
    expect(await untilEvent(rig, eventId, isOver)).toMatchObject({ state: "DELIVERED" });
    await bell.stop(performance.now() + 1_000);
  });
});

describe("policy and keys", () => {
  it("W7 gives up at once on a URL that the rule refuses by now, and sends nothing", async () => {
    const { name } = await rig.register(path);
    const { eventId } = await rig.endJob(name);
    await rig.startWorker({}, { SCRAPER_ALLOWED_CALLBACKS: "127.0.0.1:1" });
    const event = await untilEvent(rig, eventId, isOver);
    expect(event).toMatchObject({ state: "DEAD_LETTER", deadLetterReason: "TARGET_FORBIDDEN" });
    expect(event.deliveries[0]!.tries).toMatchObject([{ outcome: "FAILED", failure: { code: "TARGET_FORBIDDEN" } }]);
    expect(rig.received(path)).toHaveLength(0);
  });

  it("spends no try while its key can't open a secret, and delivers once it can", async () => {
    const { name } = await rig.register(path, { attemptBudget: 1 });
    const { eventId } = await rig.endJob(name);
    const signals = createTestSignals();
    const wrong = await rig.startWorker({ signals }, { SCRAPER_SECRET_KEY: "cd".repeat(32) });
    await signals.reached("settled");
    await wrong.stop(1_000);
    expect(rig.received(path)).toHaveLength(0);
    const event = await rig.event(eventId);
    expect(event).toMatchObject({ state: "PENDING", deliveries: [{ attemptsUsed: 0, tries: [] }] });
    expect(Date.parse(event.deliveries[0]!.dueAt)).toBeGreaterThan(Date.now() + 10_000);
    await rig.database.commands`update callback_deliveries set due_at = clock_timestamp() where state = 'PENDING'`;
    await rig.startWorker();
    expect(await untilEvent(rig, eventId, isOver)).toMatchObject({ state: "DELIVERED" });
  });
});

describe("draining", () => {
  it("O4 a try that ends within the grace is settled, and nothing new is claimed", async () => {
    const { name } = await rig.register(path, { maxConcurrency: 1 });
    let open = () => undefined as void;
    const until = new Promise<void>((resolve) => (open = resolve));
    rig.receiver.script(path, [{ status: 200, until }]);
    const first = await rig.endJob(name);
    const second = await rig.endJob(name);
    const worker = await rig.startWorker();
    await rig.receiver.waitForCount(1, here);
    const stopped = worker.stop(10_000);
    open();
    await stopped;
    const states = [await rig.event(first.eventId), await rig.event(second.eventId)].map((event) => event.state);
    expect(states.toSorted()).toEqual(["DELIVERED", "PENDING"]);
    expect(rig.received(path)).toHaveLength(1);
  });

  it("O4 a try that does not end is cut, recorded as UNKNOWN, and made again at once by the next worker", async () => {
    const { name, secret } = await rig.register(path);
    rig.receiver.script(path, ["HANG", 200]);
    const { eventId } = await rig.endJob(name);
    const worker = await rig.startWorker();
    await rig.receiver.waitForCount(1, here);
    await worker.stop(100);
    const cut = await rig.event(eventId);
    expect(cut).toMatchObject({
      state: "PENDING",
      deliveries: [{ attemptsUsed: 1, tries: [{ outcome: "UNKNOWN", failure: { code: "WORKER_LOST" } }] }],
    });
    await rig.startWorker();
    const event = await untilEvent(rig, eventId, isOver);
    expect(event.deliveries[0]!.tries.map((one) => one.outcome)).toEqual(["UNKNOWN", "SUCCEEDED"]);
    const [first, again] = rig.received(path);
    verify(again!, secret);
    expect(again!.header("webhook-id")).toBe(first!.header("webhook-id"));
    expect(again!.body.equals(first!.body)).toBe(true);
  });

  it("O4 a delivery that was claimed and not sent is given back, its count too", async () => {
    const { name } = await rig.register(path);
    const { eventId } = await rig.endJob(name);
    const signals = createTestSignals();
    using claimed = signals.hold("claimed");
    // The claim has committed and the run has begun; the drain cuts it before its bytes are stored.
    const worker = await rig.startWorker({
      signals,
      transport: {
        send: (_request, { signal }) =>
          new Promise((resolve) => {
            const cut = { ok: false, aborted: true, failure: null, latencyMs: 0, sent: false } as const;
            if (signal.aborted) resolve(cut);
            signal.addEventListener("abort", () => resolve(cut));
          }),
        close: () => Promise.resolve(),
        sockets: () => 0,
      },
    });
    await claimed.held;
    claimed.release();
    await worker.stop(50);
    expect(await rig.event(eventId)).toMatchObject({
      state: "PENDING",
      deliveries: [{ state: "PENDING", attemptsUsed: 0, tries: [] }],
    });
  });
});

describe("a lost lease", () => {
  it("J2 a worker that lost its lease settles nothing: the answer of the one that has it counts", async () => {
    const { name } = await rig.register(path);
    const { eventId } = await rig.endJob(name);
    const signals = createTestSignals();
    using settling = signals.hold("settling");
    await rig.startWorker({ signals });
    await settling.held;
    await rig.database
      .commands`update callback_deliveries set lease_token = gen_random_uuid() where lease_token is not null`;
    settling.release();
    const verdict = await signals.reached("settled");
    expect(verdict).toMatchObject({ verdict: "STALE" });
    expect(await rig.event(eventId)).toMatchObject({ state: "LEASED", deliveries: [{ tries: [] }] });
  });
});
