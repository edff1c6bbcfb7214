import type { Hop, HopVerdict } from "@keble-scraper/egress";
import type { LinePlace, PaceLines } from "./pace-lines.ts";
import type { Pauses } from "./pauses.ts";
import type { SlotHolder, SlotLimit, SlotRefusal, Slots } from "./slots.ts";
import type { Step } from "./step.ts";
import type { WaitingCounts } from "./waiting-counts.ts";

/** What the last step of one hop works with. */
export type SlotPassParts = {
  readonly slots: Slots;
  readonly lines: PaceLines;
  readonly pauses: Pauses;
  readonly counts: WaitingCounts;
  readonly random: () => number;
  readonly hop: Pick<Hop, "isFirst" | "stop">;
  readonly holder: SlotHolder;
  /** Monotonic. */
  nowMs(): number;
  /** Until the attempt must have ended. */
  leftMs(): number;
  /** For how long a first hop may wait in its worker's slot. */
  reachMs(): number;
  /** How long the hop's host is held; 0: it is not. */
  heldMs(): Promise<number>;
  /** What a hop answers whose attempt was stopped. */
  stopped(): HopVerdict;
  /** Sends the job back, due in `horizonMs` and somewhere within `spreadMs` behind that. */
  back(horizonMs: number, spreadMs: number): HopVerdict;
  /** Told when the holder has its slots. */
  onTaken(): void;
};

/** A job that was sent back for want of a slot, or of Postgres, asks again no sooner. */
export const SENT_BACK_MS = 1_000;
/** Between two looks for a free slot: a random part of this, which grows with each look. */
const SLOT_LOOK_MS = 40;
const SLOT_LOOK_MS_MAX = 400;
/** How long one exchange takes, for spreading jobs over slots. */
const EXCHANGE_MS = 1_000;
const SLOT_SPREAD_MS_MAX = 60_000;

/**
 * Makes the last step of one hop, which takes a slot and a turn of the pace of every limit. Nothing should stand between it
 * and the request: what it lets go is counted as sent.
 */
export function createSlotPass(parts: SlotPassParts): (wanted: readonly SlotLimit[]) => Promise<Step> {
  const { slots, lines, pauses, counts, random, hop, holder, nowMs, leftMs, reachMs, heldMs, stopped, back } = parts;

  /** Waits to be the first of its line. A look at the host's hold comes before the step then; a held host's leaves the line. */
  async function passLine(place: LinePlace, patience: () => number): Promise<Step> {
    while (!place.isFirst) {
      const mayWaitMs = patience();
      if (mayWaitMs <= 0) return back(0, SENT_BACK_MS);
      if (!(await pauses.wait(mayWaitMs, hop.stop, (end) => place.onFirst(end)))) return stopped();
    }
    return (await heldMs()) === 0 ? "ON" : "AGAIN";
  }

  async function waitForSlot(
    { limit, inMs }: SlotRefusal,
    asked: { readonly wanted: readonly SlotLimit[]; readonly looks: number; readonly askedMs: number },
    patience: number,
  ): Promise<Step> {
    if (patience <= 0 || (inMs ?? 0) > patience) {
      // One that is late has its turn: it comes back for it at once.
      return back(inMs ?? 0, inMs === null ? await slotSpreadMs(limit) : SENT_BACK_MS);
    }
    // From when it was asked: the answer's way back makes up for the way of the next question.
    const lookMs =
      inMs === null
        ? Math.min(SLOT_LOOK_MS * asked.looks, SLOT_LOOK_MS_MAX) * (0.5 + random() / 2)
        : Math.max(1, inMs - (nowMs() - asked.askedMs));
    const isOn = await pauses.wait(Math.min(lookMs, patience), hop.stop, (end) =>
      inMs === null ? slots.onRoom(asked.wanted, end) : () => undefined,
    );
    return isOn ? "ON" : stopped();
  }

  async function slotSpreadMs({ key, slotsMax }: SlotLimit): Promise<number> {
    const queuedMs = ((await counts.count(key)) / (slotsMax ?? Infinity)) * EXCHANGE_MS;
    return SENT_BACK_MS + Math.min(queuedMs, SLOT_SPREAD_MS_MAX);
  }

  return async (wanted) => {
    if (wanted.length === 0) return "ON";
    const firstLookMs = nowMs();
    const patience = () => (hop.isFirst ? reachMs() - (nowMs() - firstLookMs) : leftMs());
    // Behind those who are late already.
    const busy = wanted.find(({ key }) => lines.has(key));
    let place = busy === undefined ? undefined : lines.join(busy.key);
    try {
      for (let looks = 1; ; looks += 1) {
        const queued = place === undefined ? "ON" : await passLine(place, patience);
        if (queued !== "ON") return queued;
        const askedMs = nowMs();
        const refusal = await slots.take(holder, wanted);
        if (refusal === null) {
          parts.onTaken();
          return "ON";
        }
        const isLate = refusal.inMs !== null;
        if (place?.key !== refusal.limit.key || !isLate) {
          place?.leave();
          place = isLate ? lines.join(refusal.limit.key) : undefined;
        }
        if (place?.isFirst === false) continue;
        const answer = await waitForSlot(refusal, { wanted, looks, askedMs }, patience());
        if (answer !== "ON") return answer;
      }
    } finally {
      place?.leave();
    }
  };
}
