import { createGate } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { QUICK_RECOVERY, RECOVERED_WITHIN_MS, jobFor, ledger, openRig, registerEndpoint } from "../stack-fixtures.ts";

test("J4 a worker killed in mid-body is LOST, its job SUCCEEDS elsewhere in time, and one callback tells it", async () => {
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
  const { id } = await api.submit(jobFor(rig, "/page", { callback: { endpoint: "told" } }));
  await midBody.opened;
  const killedAt = performance.now();
  // Both, so that whichever had the job is dead; the launcher starts them again.
  rig.stack.kill("worker-fetch-1");
  rig.stack.kill("worker-fetch-2");
  const job = await api.finished(id, 30_000);
  expect(performance.now() - killedAt).toBeLessThan(RECOVERED_WITHIN_MS + 2_000);
  expect(job).toMatchObject({ status: "SUCCEEDED", limits: { attemptsUsed: 2 } });
  expect(await ledger(rig, id)).toMatchObject([
    { outcome: "LOST", ordinal: 1, failure: { code: "WORKER_LOST" } },
    { outcome: "SUCCEEDED", ordinal: 2, failure: null },
  ]);
  await rig.receiver.waitFor((one) => one.path === "/told");
  const ids = new Set(rig.receiver.requests.map((one) => one.header("webhook-id")));
  expect(ids.size).toBe(1);
});

test("J2 a worker stopped past its lease and resumed changes nothing, claimed again or not", async () => {
  await using rig = await openRig({ env: QUICK_RECOVERY, args: ["--fetch-workers=1"] });
  const { api } = rig.stack;
  const first = createGate();
  const answers: (() => Promise<void>)[] = [];
  rig.origin.on("/page", async (reply) => {
    answers.push(() => reply.send({ body: `answer ${answers.length}` }));
    first.open();
    await reply.closed;
  });
  const { id } = await api.submit(jobFor(rig, "/page", { limits: { attemptBudget: 1 } }));
  await first.opened;
  rig.stack.kill("worker-fetch-1", "SIGSTOP");
  const job = await api.finished(id, 30_000);
  expect(job).toMatchObject({ status: "FAILED", failure: { code: "WORKER_LOST" } });
  await answers[0]?.();
  rig.stack.kill("worker-fetch-1", "SIGCONT");
  // The same worker does new work after it, so what it wanted to write has had its chance.
  rig.origin.on("/next", (reply) => reply.send({ body: "next" }));
  const next = await api.submit(jobFor(rig, "/next"));
  expect(await api.finished(next.id)).toMatchObject({ status: "SUCCEEDED" });
  expect(await api.call("GET", `/v1/jobs/${id}`)).toMatchObject({ body: job });
  expect(await ledger(rig, id)).toMatchObject([{ outcome: "LOST" }]);
});

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
