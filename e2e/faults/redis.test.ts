import { createGate } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { jobFor, openRig, registerEndpoint } from "../stack-fixtures.ts";

test("Redis killed and started empty under 200 jobs loses none, and nothing is restarted by hand", async () => {
  await using rig = await openRig({
    env: { SCRAPER_POLL_INTERVAL_SECONDS: "1", SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "1" },
    args: ["--fetch-workers=2"],
  });
  const { api } = rig.stack;
  await registerEndpoint(rig, "told", "/told");
  const some = createGate();
  let served = 0;
  rig.origin.on("/page", async (reply) => {
    served += 1;
    if (served === 20) some.open();
    await reply.send({ body: `page ${served}` });
  });
  const before = rig.stack.processes();
  const job = jobFor(rig, "/page", { callback: { endpoint: "told" } });
  const batch = () => api.call("POST", "/v1/jobs/batch", { body: { jobs: Array.from({ length: 100 }, () => job) } });
  const first = await batch();
  await some.opened;
  const redis = rig.stack.kill("redis");
  const second = await batch();
  await rig.stack.waitForRestart("redis", redis);
  const items = [first, second].flatMap((answer) => (answer.body as { items: { job: { id: string } }[] }).items);
  expect(items).toHaveLength(200);
  for (const item of items) expect(await api.finished(item.job.id, 60_000)).toMatchObject({ status: "SUCCEEDED" });
  await rig.receiver.waitForCount(200, (one) => one.path === "/told", 60_000);
  const events = new Set(rig.receiver.requests.map((one) => one.header("webhook-id")));
  expect(events.size).toBe(200);
  const after = rig.stack.processes();
  const others = Object.keys(before).filter((name) => name !== "redis");
  expect(others.map((name) => after[name])).toEqual(others.map((name) => before[name]));
});
