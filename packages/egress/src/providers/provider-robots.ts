import { ROBOTS_BYTES_MAX } from "../robots/parse-robots.ts";
import { createRobotsGate, type FetchRobots, type RobotsFetched, type RobotsGate } from "../robots/robots-gate.ts";
import { createAttemptRecord } from "../transport/attempt-record.ts";
import { createPrefixStage } from "../transport/body-stage.ts";
import { PRODUCT_TOKEN } from "../transport/user-agent.ts";
import type { RunningAttempts } from "../transport/running-attempts.ts";
import type { SocketMeter } from "../transport/socket-meter.ts";
import { createStop, type Stop } from "../transport/stop.ts";
import { toTimeout } from "./provider-failure.ts";
import type { ProviderCallContext, ProviderTransportParts } from "./provider-transport.ts";
import { createUsageRecord, type UsageRecord } from "./usage-record.ts";

/** A file that is larger than this is no robots.txt; up to here the rules are what its first 500 KiB say. */
const DELIVERED_BYTES_MAX = 16 * 1024 * 1024;

/**
 * A robots gate whose files come by the provider's API, like the pages: a job leaves by no route that it did not name. What
 * a file costs is written into the record of the attempt that began it: `payers` knows it by the meter that it asked with.
 */
export function createProviderRobots({
  protocol,
  client,
  clock,
  running,
  payers,
}: ProviderTransportParts & {
  readonly running: RunningAttempts;
  readonly payers: WeakMap<SocketMeter, UsageRecord>;
}): RobotsGate {
  const fetchRobots: FetchRobots = async (url, { signal, admit, meter, egress }) => {
    const limitMs = client.limits.robotsTimeoutMs;
    const nowMs = clock.monotonicMs();
    const stop = createStop({ signal, deadline: Infinity, limitMs, nowMs });
    const used = (meter === null ? undefined : payers.get(meter)) ?? createUsageRecord();
    const run = async (): Promise<RobotsFetched> => {
      const admitted = await admit({ url, purpose: "ROBOTS", isFirst: true, crawlDelayMs: null, stop });
      if (admitted.kind === "WAIT") return admitted;
      if (admitted.kind === "STOPPED") return lateFile(stop);
      const record = createAttemptRecord({ url, stop, meter: null, monotonicMs: clock.monotonicMs });
      const context: ProviderCallContext = { stop, endsAt: nowMs + limitMs, record, usage: used.begin() };
      const file = createPrefixStage(ROBOTS_BYTES_MAX + 1);
      const ask = {
        purpose: "ROBOTS",
        url,
        headers: {},
        accept: "ANY_RESPONSE",
        contentTypes: null,
        maxBodyBytes: DELIVERED_BYTES_MAX,
        callerId: "",
        capture: "DOM",
        egress,
      } as const;
      const end = await protocol.send(ask, file, context).finally(admitted.done);
      if (end.kind === "STOPPED") return lateFile(stop);
      if (end.kind === "FAILED") return { kind: "FAILED", failure: end.failure };
      const body = protocol.unwrapRobots(file.read());
      return { kind: "ANSWERED", response: { httpStatus: end.response.httpStatus, body } };
    };
    return running.track(stop, run());
  };
  const lateFile = (stop: Stop): RobotsFetched => {
    if (stop.reason !== "ATTEMPT_LIMIT") throw new Error("the robots.txt is not wanted any more");
    return { kind: "FAILED", failure: toTimeout("HEAD", protocol.origin, null) };
  };
  return createRobotsGate({ fetchRobots, productToken: PRODUCT_TOKEN });
}
