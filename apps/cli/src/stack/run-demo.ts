import { createHash } from "node:crypto";
import {
  AttemptPage,
  CallbackEndpoint,
  CallbackEndpointPage,
  Download,
  Job,
  RegisteredCallbackEndpoint,
} from "@keble-scraper/contract";
import { request } from "undici";
import { expectStatus, type GatewayClient } from "./gateway-client.ts";
import { type Credentials, LOCAL_CALLER } from "./load-credentials.ts";
import type { ReceivedCallback, SampleSite } from "./sample-site.ts";
import { readStateFile, type StateDirectory, writeStateFile } from "./state-directory.ts";

const ENDPOINT = "demo";
const DONE_WITHIN_S = 30;

type DemoOptions = {
  readonly state: StateDirectory;
  readonly gateway: GatewayClient;
  readonly credentials: Credentials;
  readonly site: SampleSite;
  readonly print: (line: string) => void;
  readonly stop: AbortSignal;
};

/**
 * Takes one real job through all of it by the public API alone: submit, fetch with a redirect, store, signed download,
 * signed callback. Prints what came of it. A failure is printed too and ends nothing: the stack is up all the same.
 */
export async function runDemo(options: DemoOptions): Promise<void> {
  const { print, stop } = options;
  try {
    options.site.expectSecret(await ensureEndpoint(options));
    await fetchOnce(options);
  } catch (error) {
    if (stop.aborted) return;
    print(`The first job did not go through: ${error instanceof Error ? error.message : String(error)}`);
    print(`The logs in ${options.state.logs} say why.`);
  }
}

async function fetchOnce({ gateway, credentials, site, print, stop }: DemoOptions): Promise<void> {
  const key = credentials.serviceKey;
  const submittedAt = Date.now();
  const submitted = await gateway.call(key, "POST", "/v1/jobs", {
    body: { target: { url: `${site.originUrl}/moved` }, callback: { endpoint: ENDPOINT }, labels: { from: "up" } },
    headers: { prefer: `wait=${DONE_WITHIN_S}` },
  });
  const job = Job.parse(expectStatus(submitted, [200, 202], "The first job"));
  if (job.result === null || job.finishedAt === null) {
    throw new Error(
      `it is ${job.status}${job.failure === null ? "" : ` (${job.failure.code}: ${job.failure.message})`}`,
    );
  }
  const ledger = await gateway.call(key, "GET", `/v1/jobs/${job.id}/attempts`);
  const attempt = AttemptPage.parse(expectStatus(ledger, [200], "Its ledger")).items.at(-1);
  const content = await downloadAndHash(gateway, key, job);
  const callback = await site.waitForCallback(
    job.id,
    AbortSignal.any([stop, AbortSignal.timeout(DONE_WITHIN_S * 1_000)]),
  );
  const after = (time: string | undefined) => (time === undefined ? "?" : `${Date.parse(time) - submittedAt} ms`);
  const { result } = job;
  print(
    [
      `First job ${job.id}`,
      `  outcome    ${job.status}, HTTP ${result.httpStatus} by ${result.route} after ${result.redirects.length} redirect`,
      `  final URL  ${result.finalUrl}`,
      `  body       ${result.sizeBytes} bytes, SHA-256 ${result.sha256 ?? "none"}`,
      `  download   signed link, ${content === result.sha256 ? "the same SHA-256" : `ANOTHER SHA-256: ${content}`}`,
      `  callback   ${describe(callback)}`,
      `  times      accepted ${after(job.createdAt)}, fetch began ${after(attempt?.startedAt)}, fetched ${after(result.fetchedAt)}, ` +
        `settled ${after(job.finishedAt)}, callback ${callback.arrivedAtMs - submittedAt} ms after the submit`,
    ].join("\n"),
  );
}

async function downloadAndHash(gateway: GatewayClient, key: string, job: Job): Promise<string> {
  const path = `/v1/artifacts/${job.result?.artifactId ?? ""}/downloads`;
  const { url } = Download.parse(expectStatus(await gateway.call(key, "POST", path), [200, 201], "Its download"));
  const answer = await request(url);
  const hash = createHash("sha256");
  for await (const chunk of answer.body as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest("hex");
}

/** The endpoint of the last start, pointed to this start's receiver, or a new one; returns its secret. */
async function ensureEndpoint({ state, gateway, credentials, site }: DemoOptions): Promise<string> {
  const { operatorKey } = credentials;
  const url = site.receiverUrl;
  const kept = readStateFile(state.demo) ?? {};
  const path = "/v1/callback-endpoints";
  const query = `${path}?name=${ENDPOINT}&callerId=${LOCAL_CALLER}`;
  const found = CallbackEndpointPage.parse(
    expectStatus(await gateway.call(operatorKey, "GET", query), [200], "The list of callback endpoints"),
  ).items[0];
  const secret = kept["secret"];
  if (found !== undefined && found.id === kept["endpointId"] && secret !== undefined) {
    if (found.url !== url || !found.enabled) {
      const patched = await gateway.call(operatorKey, "PATCH", `${path}/${found.id}`, { body: { url, enabled: true } });
      CallbackEndpoint.parse(expectStatus(patched, [200], "The demo endpoint's new address"));
    }
    return secret;
  }
  if (found !== undefined) {
    const deleted = await gateway.call(operatorKey, "DELETE", `${path}/${found.id}?force=true`);
    expectStatus(deleted, [204], "The deletion of a demo endpoint whose secret is lost");
  }
  const created = await gateway.call(operatorKey, "POST", path, {
    body: { name: ENDPOINT, callerId: LOCAL_CALLER, url },
  });
  const endpoint = RegisteredCallbackEndpoint.parse(expectStatus(created, [201], "The demo endpoint"));
  writeStateFile(state.demo, { endpointId: endpoint.id, secret: endpoint.secret });
  return endpoint.secret;
}

function describe({ type, isVerified }: ReceivedCallback): string {
  return `${type}, ${isVerified ? "signature verified" : "SIGNATURE NOT VERIFIED"}`;
}
