import { createGate } from "@keble-scraper/testkit";
import { expect, test } from "vitest";
import { jobFor, openRig, registerEndpoint, submitMany } from "../stack-fixtures.ts";

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
  const ids = await submitMany(rig, 100, job);
  await some.opened;
  const redis = rig.stack.kill("redis");
  ids.push(...(await submitMany(rig, 100, job)));
  await rig.stack.waitForRestart("redis", redis);
  expect(ids).toHaveLength(200);
  for (const id of ids) expect(await api.finished(id, 60_000)).toMatchObject({ status: "SUCCEEDED" });
  await rig.receiver.waitForCount(200, (one) => one.path === "/told", 60_000);
  const events = new Set(rig.receiver.requests.map((one) => one.header("webhook-id")));
  expect(events.size).toBe(200);
  const after = rig.stack.processes();
  const others = Object.keys(before).filter((name) => name !== "redis");
  expect(others.map((name) => after[name])).toEqual(others.map((name) => before[name]));
});
