import { localFailure } from "@keble-scraper/contract";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { RobotsGate } from "../robots/robots-gate.ts";
import type { AdmitHop } from "./admission.ts";
import type { AttemptRecord } from "./attempt-record.ts";
import type { FetchOutcome } from "./fetch-outcome.ts";
import type { FetchRequest } from "./fetch-request.ts";
import type { SocketMeter } from "./socket-meter.ts";
import { type Stop, STOPPED, untilStop } from "./stop.ts";

/** Whose robots.txt is asked, by which attempt. `gate` null: robots.txt has no say. `meter` null: its bytes are free. */
export type RobotsQuestion = {
  readonly gate: RobotsGate | null;
  readonly stop: Stop;
  readonly admit: AdmitHop;
  readonly meter: SocketMeter | null;
  readonly egress: FetchRequest["egress"];
  readonly record: AttemptRecord;
};

/** GO: the URL may be asked for. END: the attempt ends with this outcome. STOPPED: the attempt's stop came first. */
export type RobotsPermission =
  | { readonly kind: "GO"; readonly crawlDelayMs: number | null }
  | { readonly kind: "END"; readonly outcome: FetchOutcome }
  | { readonly kind: "STOPPED" };

/** Asks robots.txt about one URL of a chain, on behalf of every route. */
export async function askRobots(url: VettedUrl, question: RobotsQuestion): Promise<RobotsPermission> {
  const { gate, stop, admit, meter, egress, record } = question;
  if (gate === null) return { kind: "GO", crawlDelayMs: null };
  // The file's requests wait as this attempt may: released as long as none of its own went out.
  const admitFile: AdmitHop = (hop) => admit({ ...hop, isFirst: !record.progress.sent });
  const verdict = await untilStop(stop, gate.check(url, { signal: stop.signal, admit: admitFile, meter, egress }));
  if (verdict === STOPPED) return { kind: "STOPPED" };
  switch (verdict.kind) {
    case "ALLOWED":
      return { kind: "GO", crawlDelayMs: verdict.crawlDelayMs };
    case "DISALLOWED":
      return { kind: "END", outcome: record.fail(localFailure("ROBOTS_DISALLOWED")) };
    case "WAIT":
      return { kind: "END", outcome: record.giveBack(verdict.wait) };
    case "FAILED": {
      if (meter?.isExceeded === true) return { kind: "END", outcome: record.failAs("BODY_TOO_LARGE", null) };
      const isForbidden = verdict.failure.code === "TARGET_FORBIDDEN";
      return { kind: "END", outcome: isForbidden ? record.refuseTarget() : record.fail(verdict.failure) };
    }
  }
}
