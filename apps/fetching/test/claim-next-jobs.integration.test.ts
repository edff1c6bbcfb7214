import { expect, test } from "vitest";
import { createClaimNextJobs } from "../src/worker/claim-next-jobs.ts";
import { openFetchRig } from "./worker-fixtures.ts";

function claimsOf(
  rig: Awaited<ReturnType<typeof openFetchRig>>,
  onPartial: (error: unknown) => void = () => undefined,
) {
  return createClaimNextJobs({
    transport: "HTTP",
    sql: rig.database.commands,
    leaseSeconds: 60,
    callerRunningMax: null,
    monotonicMs: () => performance.now(),
    onPartial,
  });
}

test("J9 from claim to claim, each caller gets its turn, with suspects too", async () => {
  await using rig = await openFetchRig();
  for (const caller of ["a", "b", "c"]) {
    for (let count = 0; count < 4; count += 1) await rig.submit("/page", {}, caller);
  }
  const claimNext = claimsOf(rig);
  const taken: string[] = [];
  for (let count = 0; count < 6; count += 1) {
    taken.push(...(await claimNext(1, [])).leases.map((job) => job.callerId));
  }
  expect(taken.join("")).toBe("abcabc");
  await rig.database.commands`update jobs set suspected_at = clock_timestamp() where status = 'QUEUED'`;
  const suspects: string[] = [];
  for (let count = 0; count < 3; count += 1) {
    suspects.push(...(await claimNext(1, [])).leases.map((job) => job.callerId));
  }
  expect(suspects.toSorted().join("")).toBe("abc");
});

test("J4 a claim that fails half way returns what it had taken, so that nobody waits for a lease to expire", async () => {
  await using rig = await openFetchRig();
  const suspect = await rig.submit("/page");
  await rig.database.commands`update jobs set suspected_at = clock_timestamp()`;
  await rig.submit("/page");
  let statements = 0;
  const failing = new Proxy(rig.database.commands, {
    apply(target, self, args) {
      const text = (args[0] as TemplateStringsArray | undefined)?.join("?") ?? "";
      if (text.includes("update jobs j")) {
        statements += 1;
        // The second claim meets a lost connection.
        if (statements === 2) return Promise.reject(new Error("connection lost"));
      }
      return Reflect.apply(target, self, args) as unknown;
    },
  });
  const partial: unknown[] = [];
  const claimNext = createClaimNextJobs({
    transport: "HTTP",
    sql: failing,
    leaseSeconds: 60,
    callerRunningMax: null,
    monotonicMs: () => performance.now(),
    onPartial: (error) => partial.push(error),
  });
  const { leases } = await claimNext(5, []);
  expect(leases.map((job) => job.id)).toEqual([suspect]);
  expect(partial).toHaveLength(1);
});
