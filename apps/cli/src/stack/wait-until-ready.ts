import { setTimeout as delay } from "node:timers/promises";
import { request } from "undici";
import { CliError } from "../cli-error.ts";

const READY_WITHIN_MS = 60_000;
const ASK_EVERY_MS = 100;

/**
 * Resolves when the gateway says that all parts are ready; NOT_READY, with its last answer, when it does not within a
 * minute. Ends early when the signal aborts.
 */
export async function waitUntilReady(gatewayUrl: string, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + READY_WITHIN_MS;
  let last = "no answer";
  while (performance.now() < deadline) {
    signal.throwIfAborted();
    try {
      const answer = await request(`${gatewayUrl}/readyz`, { signal, headersTimeout: 5_000, bodyTimeout: 5_000 });
      last = (await answer.body.text()).slice(0, 1_000);
      if (answer.statusCode === 200) return;
    } catch (error) {
      last = error instanceof Error ? error.message : String(error);
    }
    await delay(ASK_EVERY_MS);
  }
  throw new CliError("NOT_READY", `The gateway does not become ready: ${last}`);
}
