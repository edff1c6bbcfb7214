import { createHash } from "node:crypto";
import { createGate } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import {
  jobFor,
  ledger,
  openRig,
  QUICK_RECOVERY,
  RECOVERED_WITHIN_MS,
  registerEndpoint,
  submitMany,
  type Rig,
} from "../stack-fixtures.ts";

test("J4 A7 a worker killed in mid-body is LOST, its job and those that wait for its answer SUCCEED elsewhere in time", async () => {
  await using rig = await openRig({ env: QUICK_RECOVERY, args: ["--fetch-workers=2"] });
  const { api } = rig.stack;
  await registerEndpoint(rig, "told", "/told");
  const midBody = createGate();
  let requests = 0;
  rig.origin.on("/page", async (reply) => {
    requests += 1;
    if (requests > 1) return reply.send({ body: "whole" });
    await reply.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf");
    midBody.open();
    return reply.closed;
  });
  const fresh = { freshness: "ONE_HOUR" };
  const { id } = await api.submit(jobFor(rig, "/page", { ...fresh, callback: { endpoint: "told" } }));
  await midBody.opened;
  const others = await submitMany(rig, 5, jobFor(rig, "/page", fresh));
  const killedAt = performance.now();
  // Both, so that whichever had the job is dead; the launcher starts them again.
  rig.stack.kill("worker-fetch-1");
  rig.stack.kill("worker-fetch-2");
  const job = await api.finished(id, 30_000);
  expect(performance.now() - killedAt).toBeLessThan(RECOVERED_WITHIN_MS + 2_000);
  expect(job).toMatchObject({ status: "SUCCEEDED" });
  const jobs = await Promise.all(others.map((other) => api.finished(other, 30_000)));
  expect(jobs.map(({ status }) => status)).toEqual(Array(5).fill("SUCCEEDED"));
  // Whichever took the dead one's place made the second request; the others have its answer.
  expect(requests).toBe(2);
  const ledgers = await Promise.all([id, ...others].map((one) => ledger(rig, one)));
  expect(ledgers[0]?.[0]).toMatchObject({ outcome: "LOST", ordinal: 1, failure: { code: "WORKER_LOST" } });
  expect(ledgers.flat().filter(({ outcome }) => outcome === "SUCCEEDED")).toHaveLength(1);
  await rig.receiver.waitFor((one) => one.path === "/told");
  const ids = new Set(rig.receiver.requests.map((one) => one.header("webhook-id")));
  expect(ids.size).toBe(1);
});

test("J2 a worker stopped past its lease and resumed changes nothing, though the job was not claimed again", async () => {
  await using rig = await openRig({ env: QUICK_RECOVERY, args: ["--fetch-workers=1"] });
  const { api } = rig.stack;
  const asked = createGate();
  const answers: (() => Promise<void>)[] = [];
  rig.origin.on("/page", async (reply) => {
    answers.push(() => reply.send({ body: "late" }));
    asked.open();
    await reply.closed;
  });
  const { id } = await api.submit(jobFor(rig, "/page", { limits: { attemptBudget: 1 } }));
  await asked.opened;
  rig.stack.kill("worker-fetch-1", "SIGSTOP");
  const job = await api.finished(id, 30_000);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "WORKER_LOST" } });
  await answers[0]?.();
  rig.stack.kill("worker-fetch-1", "SIGCONT");
  await untilWorkedAgain(rig);
  expect(await api.call("GET", `/v1/jobs/${id}`)).toMatchObject({ body: job });
  expect(await ledger(rig, id)).toMatchObject([{ outcome: "LOST" }]);
});

test("J2 a worker stopped past its lease and resumed changes nothing of what another worker does with the job", async () => {
  await using rig = await openRig({ env: QUICK_RECOVERY, args: ["--fetch-workers=2"] });
  const { api } = rig.stack;
  const [first, second] = [createGate(), createGate()];
  const answers: (() => Promise<void>)[] = [];
  rig.origin.on("/page", async (reply) => {
    const ordinal = answers.length + 1;
    answers.push(() => reply.send({ body: `answer ${ordinal}` }));
    (ordinal === 1 ? first : second).open();
    await reply.closed;
  });
  // Only one worker is awake to take the job; the other one takes it over.
  rig.stack.kill("worker-fetch-2", "SIGSTOP");
  const { id } = await api.submit(jobFor(rig, "/page"));
  await first.opened;
  rig.stack.kill("worker-fetch-1", "SIGSTOP");
  rig.stack.kill("worker-fetch-2", "SIGCONT");
  await second.opened;
  // The late worker gets its answer and wakes while the other one still runs the job.
  await answers[0]?.();
  rig.stack.kill("worker-fetch-1", "SIGCONT");
  await untilWorkedAgain(rig);
  expect(await api.call("GET", `/v1/jobs/${id}`)).toMatchObject({ body: { status: "RUNNING", result: null } });
  await answers[1]?.();
  const job = await api.finished(id);
  expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 2 } });
  expect(job["result"]).toMatchObject({ sha256: createHash("sha256").update("answer 2").digest("hex") });
  expect(await ledger(rig, id)).toMatchObject([{ outcome: "LOST" }, { outcome: "SUCCEEDED" }]);
});

/** New work is done after it, by every worker, so what a late one wanted to write has had its chance. */
async function untilWorkedAgain(rig: Rig): Promise<void> {
  rig.origin.on("/next", (reply) => reply.send({ body: "next" }));
  for (let count = 0; count < 5; count += 1) {
    const next = await rig.stack.api.submit(jobFor(rig, "/next"));
    expect(await rig.stack.api.finished(next.id)).toMatchObject({ status: "SUCCEEDED" });
  }
}

test("J4 a job that kills every worker that takes it ends FAILED on its own budget, and its 50 neighbours SUCCEED", async () => {
  await using rig = await openRig({ env: QUICK_RECOVERY, args: ["--fetch-workers=1"] });
  const { api } = rig.stack;
  let kills = 0;
  const allThere = createGate();
  let neighbours = 0;
  rig.origin.on("/neighbour", async (reply) => {
    neighbours += 1;
    if (neighbours === 15) allThere.open();
    // The first ones wait for the kill that takes them along.
    if (kills === 0) await Promise.race([reply.closed, allThere.opened.then(() => reply.closed)]);
    else await reply.send({ body: "fine" });
  });
  rig.origin.on("/poison", async (reply) => {
    if (kills === 0) await allThere.opened;
    kills += 1;
    rig.stack.kill("worker-fetch-1");
    await reply.closed;
  });
  const jobs = [jobFor(rig, "/poison"), ...Array.from({ length: 50 }, () => jobFor(rig, "/neighbour"))];
  const answer = await api.call("POST", "/v1/jobs/batch", { body: { jobs } });
  const ids = (answer.body as { items: { job: { id: string } }[] }).items.map((item) => item.job.id);
  const [poison = "", ...others] = ids;
  for (const id of others) expect(await api.finished(id, 90_000)).toMatchObject({ status: "SUCCEEDED" });
  const job = await api.finished(poison, 60_000);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "WORKER_LOST" }, limits: { attemptsUsed: 3 } });
  expect(kills).toBe(3);
  expect(await ledger(rig, poison)).toMatchObject([{ outcome: "LOST" }, { outcome: "LOST" }, { outcome: "LOST" }]);
});
