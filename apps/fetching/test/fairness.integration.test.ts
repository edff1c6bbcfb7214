import { submitJobs } from "@keble-scraper/db/commands/intake";
import { expect, test } from "vitest";
import { openFetchRig, untilEnded } from "./worker-fixtures.ts";

const WAITING = 50_000;

test("J9 50,000 waiting jobs of one caller do not delay another caller's job", async () => {
  await using rig = await openFetchRig();
  rig.origin.on("/page", (reply) => reply.send({ body: "page" }));
  const job = {
    idempotencyKey: null,
    requestSha256: "00".repeat(32),
    hostKey: "127.0.0.1",
    capture: null,
    egress: null,
    target: { url: `http://127.0.0.1:${rig.origin.port}/page`, method: "GET" as const, headers: {} },
    transport: "HTTP",
    routes: ["DIRECT"],
    freshness: "NO_CACHE",
    accept: "SUCCESS_ONLY",
    contentTypes: null,
    robots: "IGNORE",
    labels: {},
    attemptBudget: 3,
    maxBodyBytes: 1_000_000,
    costCapMicros: 0,
    deadlineSeconds: 3_600,
    callbackEndpoint: null,
  };
  for (let count = 0; count < WAITING; count += 1_000) {
    const jobs = Array.from({ length: 1_000 }, () => ({ ...job, id: crypto.randomUUID() }));
    await submitJobs(rig.database.commands, { callerId: "big", jobs, queuedMax: null });
  }
  await rig.startWorker();
  await rig.origin.request(100);
  const startedAt = performance.now();
  const id = await rig.submit("/page", {}, "small");
  const ended = await untilEnded(rig, id);
  const tookMs = performance.now() - startedAt;
  const [row] = await rig.database.commands<{ waiting: number }[]>`
    select count(*)::int as waiting from jobs where caller_id = 'big' and finished_at is null and status = 'QUEUED'`;
  console.log(`a job beside ${row?.waiting} waiting jobs of another caller took ${tookMs.toFixed(0)} ms`);
  expect(ended).toMatchObject({ status: "SUCCEEDED", callerId: "small" });
  // It was not its turn in the order of due times, and yet nearly all that were due before it still wait.
  expect(row?.waiting).toBeGreaterThan(WAITING * 0.9);
});
