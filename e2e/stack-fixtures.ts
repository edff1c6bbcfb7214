import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  type Origin,
  type Receiver,
  type Stack,
  startOrigin,
  startReceiver,
  startStack,
  type UnlockerApiServer,
} from "@keble-scraper/testkit";

/** A running product with an origin it may fetch and a receiver it may call. */
export type Rig = AsyncDisposable & { readonly stack: Stack; readonly origin: Origin; readonly receiver: Receiver };

/** Timings that make recovery quick: a lease of 4 s (the least there is), maintenance twice a second. */
export const QUICK_RECOVERY = {
  SCRAPER_LEASE_SECONDS: "4",
  SCRAPER_MAINTENANCE_INTERVAL_SECONDS: "0.5",
  SCRAPER_POLL_INTERVAL_SECONDS: "0.5",
} as const;

/** What a lost worker's job waits at most with `QUICK_RECOVERY`: lease, maintenance and poll, and a second to run. */
export const RECOVERED_WITHIN_MS = 4_000 + 500 + 550 + 1_000;

/** Starts all of it on free ports; disposing stops it in order. */
export async function openRig(
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly args?: readonly string[];
    /** More origins that jobs may name. */
    readonly origins?: readonly Origin[];
  } = {},
): Promise<Rig> {
  const origin = await startOrigin();
  const receiver = await startReceiver();
  const stack = await startStack({
    args: options.args ?? [],
    env: {
      SCRAPER_DEVELOPMENT_ALLOWED_TARGETS: [origin, ...(options.origins ?? [])]
        .map(({ port }) => `127.0.0.1:${port}`)
        .join(","),
      SCRAPER_ALLOWED_CALLBACKS: receiver.hostPort,
      ...options.env,
    },
  });
  return {
    stack,
    origin,
    receiver,
    async [Symbol.asyncDispose]() {
      await stack[Symbol.asyncDispose]();
      await receiver[Symbol.asyncDispose]();
      await origin[Symbol.asyncDispose]();
    },
  };
}

/** A job for a path of the rig's origin. */
export function jobFor(rig: Rig, path: string, more: object = {}): object {
  return jobAt(rig.origin, path, more);
}

/** A job for a path of an origin. */
export function jobAt(origin: Origin, path: string, more: object = {}): object {
  return { target: { url: `http://127.0.0.1:${origin.port}${path}` }, robots: "IGNORE", ...more };
}

/** Submits the same job so many times, as one batch; the ids in the order of the batch. */
export async function submitMany(rig: Rig, count: number, job: object): Promise<string[]> {
  const { status, body } = await rig.stack.api.call("POST", "/v1/jobs/batch", {
    body: { jobs: Array.from({ length: count }, () => job) },
  });
  if (status !== 202) throw new Error(`${status}: ${JSON.stringify(body)}`);
  return (body as { items: { job: { id: string } }[] }).items.map((item) => item.job.id);
}

/** Registers the rig's receiver as an endpoint of the local stack's caller and returns its secret. */
export async function registerEndpoint(
  rig: Rig,
  name: string,
  path: string,
  more: object = {},
): Promise<{ id: string; secret: string }> {
  const answer = await rig.stack.api.call("POST", "/v1/callback-endpoints", {
    key: rig.stack.operatorKey,
    body: { name, callerId: await callerId(rig), url: `${rig.receiver.url}${path}`, ...more },
  });
  if (answer.status !== 201) throw new Error(`${answer.status}: ${JSON.stringify(answer.body)}`);
  return answer.body as { id: string; secret: string };
}

/** The tenant of the local stack's service key. */
async function callerId(rig: Rig): Promise<string> {
  const answer = await rig.stack.api.call("GET", "/v1/api-keys", { key: rig.stack.operatorKey });
  const { items } = answer.body as { items: { kind: string; callerId: string | null }[] };
  const service = items.find((key) => key.kind === "SERVICE")?.callerId;
  if (service == null) throw new Error("the stack has no service key");
  return service;
}

/** A job's ledger, oldest first. */
export async function ledger(
  rig: Rig,
  id: string,
): Promise<{ outcome: string; ordinal: number; failure: { code: string } | null }[]> {
  const answer = await rig.stack.api.call("GET", `/v1/jobs/${id}/attempts`);
  return (answer.body as { items: { outcome: string; ordinal: number; failure: { code: string } | null }[] }).items;
}

/** Lines of the fetch workers' logs that hold a text. */
export function countLines(rig: Rig, text: string): number {
  const logs = join(rig.stack.stateDirectory, "logs");
  const workers = readdirSync(logs).filter((name) => name.startsWith("worker-fetch"));
  const lines = workers.flatMap((name) => readFileSync(join(logs, name), "utf8").split("\n"));
  return lines.filter((line) => line.includes(text)).length;
}

/** Settings that turn UNLOCKER on, with a stand-in behind it. */
export function unlockerEnv(unlocker: UnlockerApiServer) {
  return {
    SCRAPER_UNLOCKER_URL: unlocker.url,
    SCRAPER_UNLOCKER_API_KEY: unlocker.apiKey,
    SCRAPER_UNLOCKER_ZONE: unlocker.zone,
  };
}
