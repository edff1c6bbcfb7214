/**
 * Jobs a second through the whole product: two fetch workers, a local origin whose pages of 10 KiB all differ, the batch
 * submit of the public API, fsync on, everything on this machine. Prints the rate, each stage's share of an attempt's
 * time and each process's share of the CPU. Bounded: JOBS jobs (default 10,000), then it stops what it started.
 *
 *   npm run build && npx tsx --conditions=@keble-scraper/source e2e/bench/throughput.ts
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { startStack } from "@keble-scraper/testkit";

const JOBS = Number(process.env["JOBS"] ?? 10_000);
const BATCH = 1_000;
const PARALLEL_BATCHES = 2;
/** Linux counts CPU time in hundredths of a second. */
const TICK_MS = 10;

const origin = fork(fileURLToPath(new URL("page-origin.ts", import.meta.url)), {
  execArgv: ["--import", "tsx"],
});
const [port] = (await once(origin, "message")) as [number];
try {
  await using stack = await startStack({
    args: ["--fetch-workers=2"],
    env: { SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: `127.0.0.1:${port}`, SCRAPER_LOG_LEVEL: "warn" },
  });
  const submitBatch = async (first: number): Promise<string[]> => {
    const jobs = Array.from({ length: Math.min(BATCH, JOBS - first) }, (_, index) => ({
      target: { url: `http://127.0.0.1:${port}/${first + index}` },
    }));
    const answer = await stack.api.call("POST", "/v1/jobs/batch", { body: { jobs } });
    if (answer.status !== 202) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
    return (answer.body as { items: { job: { id: string } }[] }).items.map((item) => item.job.id);
  };
  // Connections, plans and code are warm before the clock starts.
  for (const id of (await submitBatch(Math.max(0, JOBS - 200))).slice(-20)) await stack.api.finished(id);

  const processes = { ...stack.processes(), origin: origin.pid ?? 0 };
  const before = cpuOf(processes);
  const startedAt = performance.now();
  const firsts = Array.from({ length: Math.ceil(JOBS / BATCH) }, (_, index) => index * BATCH);
  const ids: string[] = [];
  const submitAll = async () => {
    for (let first = firsts.shift(); first !== undefined; first = firsts.shift())
      ids.push(...(await submitBatch(first)));
  };
  await Promise.all(Array.from({ length: PARALLEL_BATCHES }, submitAll));
  const submittedMs = performance.now() - startedAt;
  await untilNoneIsOpen(stack);
  const tookMs = performance.now() - startedAt;
  const after = cpuOf(processes);

  console.log(`${JOBS} jobs in ${(tookMs / 1_000).toFixed(2)} s: ${Math.round((JOBS / tookMs) * 1_000)} jobs/s`);
  console.log(`submitted after ${(submittedMs / 1_000).toFixed(2)} s`);
  printCpu(before, after, JOBS);
  await printStages(stack, ids);
} finally {
  origin.kill();
}

async function untilNoneIsOpen(stack: Awaited<ReturnType<typeof startStack>>): Promise<void> {
  for (const status of ["QUEUED", "RUNNING", "WAITING", "QUEUED"]) {
    for (;;) {
      const answer = await stack.api.call("GET", `/v1/jobs?status=${status}&limit=1`);
      const { items } = answer.body as { items: { id: string }[] };
      const [open] = items;
      if (open === undefined) break;
      await stack.api.call("GET", `/v1/jobs/${open.id}`, { headers: { prefer: "wait=1" } });
    }
  }
}

function cpuOf(processes: Readonly<Record<string, number>>): Map<string, number> {
  return new Map(
    Object.entries(processes).map(([name, pid]) => [name, name === "postgres" ? treeCpuMs(pid) : cpuMs(pid)]),
  );
}

/** User and system time of a process, its waited-for children included. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8")
    .replace(/^.*\) /, "")
    .split(" ");
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
}

/** Postgres works in child processes: those alive now, and those that ended are in the parent's own figure. */
function treeCpuMs(pid: number): number {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean);
  return children.reduce((sum, child) => sum + treeCpuMs(Number(child)), cpuMs(pid));
}

function printCpu(before: Map<string, number>, after: Map<string, number>, jobs: number): void {
  const used = [...after].map(([name, ms]) => [name, ms - (before.get(name) ?? 0)] as const);
  const total = used.reduce((sum, [, ms]) => sum + ms, 0);
  console.log("\nCPU                    us/job   share");
  for (const [name, ms] of used.toSorted((a, b) => b[1] - a[1])) {
    const share = `${((ms / total) * 100).toFixed(0)} %`;
    console.log(`${name.padEnd(20)} ${((ms * 1_000) / jobs).toFixed(0).padStart(8)} ${share.padStart(7)}`);
  }
}

async function printStages(stack: Awaited<ReturnType<typeof startStack>>, ids: readonly string[]): Promise<void> {
  const sample = ids.filter((_, index) => index % Math.ceil(ids.length / 200) === 0);
  const sums: Record<string, number> = {};
  for (const id of sample) {
    const answer = await stack.api.call("GET", `/v1/jobs/${id}/attempts`);
    const [attempt] = (
      answer.body as { items: { startedAt: string; finishedAt: string; timings: Record<string, number | null> }[] }
    ).items;
    if (attempt === undefined) continue;
    const totalMs = attempt.timings["totalMs"] ?? 0;
    const spanMs = Date.parse(attempt.finishedAt) - Date.parse(attempt.startedAt);
    const stages = { ...attempt.timings, "store and settle": Math.max(0, spanMs - totalMs) };
    for (const [stage, ms] of Object.entries(stages)) sums[stage] = (sums[stage] ?? 0) + ms;
  }
  console.log(`\nmean of ${sample.length} attempts, ms`);
  for (const [stage, sum] of Object.entries(sums))
    console.log(`${stage.padEnd(20)} ${(sum / sample.length).toFixed(1)}`);
}
