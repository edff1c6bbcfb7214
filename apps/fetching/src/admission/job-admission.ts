import type { Booking } from "@keble-scraper/db/commands/fetching";
import { type AdmitHop, type Hop, hostKeyOf, type HopVerdict } from "@keble-scraper/egress";
import type { Clock } from "@keble-scraper/service";
import type { AdmissionKey, Limit } from "./admission-key.ts";
import type { Clocks } from "./clocks.ts";
import type { Holds } from "./holds.ts";
import type { PaceLines } from "./pace-lines.ts";
import type { Pauses } from "./pauses.ts";
import { createSlotPass, SENT_BACK_MS } from "./slot-pass.ts";
import { type SlotHolder, slotLimitsOf, type Slots } from "./slots.ts";
import type { Step } from "./step.ts";
import type { WaitingCounts } from "./waiting-counts.ts";
import type { WaitingRoom } from "./waiting-room.ts";

/** What admission has to know of a job. Moments are monotonic milliseconds. */
export type AdmittedJob = {
  readonly id: string;
  readonly token: string;
  readonly route: string;
  readonly hostKey: string;
  /** Before its claim was sent, which looked at the host's hold. */
  readonly claimedAtMs: number;
  readonly deadlineAtMs: number;
  /** What an earlier attempt booked and did not use; null: nothing. */
  readonly booking: Booking | null;
};

/** The admission of one attempt; its hops come one after the other. */
export type JobAdmission = {
  readonly admit: AdmitHop;
  /** What is booked and not used: it goes with the job when it is released. Null: nothing. */
  booking(): Booking | null;
  /** Whole milliseconds that the attempt's requests have waited so far. */
  waitedMs(): number;
};

/** Counts since the start of the process. */
export type AdmissionCounts = { admitted: number; waited: number; sentBack: number; stopped: number };

/** What the admissions of all jobs of a worker share. */
export type JobAdmissionParts = {
  readonly clocks: Clocks;
  readonly slots: Slots;
  readonly holds: Holds;
  readonly counts: WaitingCounts;
  readonly room: WaitingRoom;
  readonly lines: PaceLines;
  readonly pauses: Pauses;
  readonly waitMs: number;
  readonly clock: Clock;
  readonly random: () => number;
  readonly tally: AdmissionCounts;
  /** The limits of a hop: its host's, then its route's. */
  limitsOf(hop: Hop, job: AdmittedJob): readonly [Limit | null, Limit | null];
  /** Whether a fault only says that Postgres is away. */
  isOutage(error: unknown): boolean;
};

const GO_FREE: HopVerdict = { kind: "GO", done() {} };
const STOPPED: HopVerdict = { kind: "STOPPED" };
/** A wait shorter than this takes no seat and harms nobody. */
const AT_ONCE_MS = 20;
/** An attempt goes back this long before its limit, so that its own stop does not come first. */
const BEFORE_LIMIT_MS = 100;
/** Jobs of a host whose hold ends come back over this time, or a tenth of the hold where that is less. */
const HOLD_SPREAD_MS_MAX = 1_000;
const OUTAGE_MS = 250;

/** Makes the admission of one attempt, which ends at `attemptEndsAtMs` (monotonic) at the latest. */
export function createJobAdmission(job: AdmittedJob, attemptEndsAtMs: number, parts: JobAdmissionParts): JobAdmission {
  const { clocks, slots, holds, counts, room, pauses, waitMs, random, tally } = parts;
  const nowMs = () => parts.clock.monotonicMs();
  const endsAtMs = Math.min(job.deadlineAtMs, attemptEndsAtMs - BEFORE_LIMIT_MS);
  const booked = readBooking(job.booking);
  let checked = { hostKey: job.hostKey, atMs: job.claimedAtMs };
  let hops = 0;
  let waitedMs = 0;
  let giveBack: (() => void) | undefined;

  const leftMs = () => endsAtMs - nowMs();
  const checkedAtMs = (hostKey: string) => (checked.hostKey === hostKey ? checked.atMs : -Infinity);
  const back = (horizonMs: number, spreadMs: number): HopVerdict => ({
    kind: "WAIT",
    wait: { horizonMs, dueMs: horizonMs + random() * spreadMs },
  });

  async function admit(hop: Hop): Promise<HopVerdict> {
    // One request at a time: whoever asks for the next one has ended the last.
    giveBack?.();
    giveBack = undefined;
    if (hop.stop.reason !== null) return STOPPED;
    const limits = parts.limitsOf(hop, job);
    const hostKey = hostKeyOf(hop.url);
    if (limits[0] === null && limits[1] === null && holds.peek(hostKey, checkedAtMs(hostKey)) === 0) return GO_FREE;
    const startedMs = nowMs();
    const passing = createPassing(hop, hostKey, limits, startedMs);
    try {
      const verdict = await passing.pass();
      if (verdict.kind === "GO") for (const limit of limits) if (limit !== null) booked.delete(limit.key);
      tally[verdict.kind === "GO" ? "admitted" : verdict.kind === "WAIT" ? "sentBack" : "stopped"] += 1;
      return verdict;
    } finally {
      passing.leave();
      const tookMs = nowMs() - startedMs;
      waitedMs += tookMs;
      if (tookMs > AT_ONCE_MS) tally.waited += 1;
    }
  }

  /** The way of one hop through its steps. */
  function createPassing(hop: Hop, hostKey: string, limits: readonly [Limit | null, Limit | null], startedMs: number) {
    let leaveSeat: (() => void) | undefined;
    hops += 1;
    const holder: SlotHolder = { member: `${job.token}:${hops}`, token: job.token, jobId: job.id };

    /** How long this hop may wait in its slot for its next step. */
    function patienceMs(): number {
      leaveSeat ??= hop.isFirst ? room.enter() : room.squeezeIn();
      return leaveSeat === undefined ? 0 : Math.max(0, Math.min(waitMs, leftMs()));
    }

    /** The same for a clock: what is as good as now needs no seat. */
    function reachMs(): number {
      return Math.max(patienceMs(), Math.min(AT_ONCE_MS, leftMs()), 0);
    }

    function stopped(): HopVerdict {
      return hop.stop.reason === "ATTEMPT_LIMIT" && !hop.isFirst ? back(0, SENT_BACK_MS) : STOPPED;
    }

    /** At a later hop, waits in place where the attempt's limit allows; null: it does not. */
    async function waitInPlace(horizonMs: number, stepMs: number): Promise<Step | null> {
      if (hop.isFirst || horizonMs > leftMs()) return null;
      return (await pauses.wait(Math.min(stepMs, leftMs()), hop.stop)) ? "AGAIN" : stopped();
    }

    async function heldMs(): Promise<number> {
      const known = holds.peek(hostKey, checkedAtMs(hostKey));
      if (known !== undefined) return known;
      const atMs = nowMs();
      const ms = await holds.look(hostKey);
      checked = { hostKey, atMs };
      return ms;
    }

    async function passHold(): Promise<Step> {
      const ms = await heldMs();
      if (ms === 0) return "ON";
      return (await waitInPlace(ms, ms)) ?? back(ms, Math.min(HOLD_SPREAD_MS_MAX, ms / 10));
    }

    async function passClock(limit: Limit | null): Promise<Step> {
      if (limit?.intervalMs == null) return "ON";
      const { key, intervalMs } = limit;
      const mayWaitMs = reachMs();
      const asked = { key, intervalMs, patienceMs: mayWaitMs, bookedAtMs: booked.get(key) ?? null };
      const turn = await clocks.take(asked);
      const horizonMs = Math.max(0, turn.atMs - turn.nowMs);
      if (turn.isBooked) booked.set(key, turn.atMs);
      else booked.delete(key);
      if (turn.isBooked && horizonMs <= mayWaitMs) {
        if (horizonMs === 0) return "ON";
        return (await pauses.wait(horizonMs, hop.stop)) ? "ON" : stopped();
      }
      return queueFor(limit.key, intervalMs, horizonMs, turn.isBooked);
    }

    /** Its own time is worth coming back for exactly then; without one a job comes back somewhere in the queue. */
    async function queueFor(
      key: AdmissionKey,
      intervalMs: number,
      horizonMs: number,
      isBooked: boolean,
    ): Promise<Step> {
      const inPlace = await waitInPlace(horizonMs, Math.max(AT_ONCE_MS, horizonMs - waitMs * random()));
      return inPlace ?? back(horizonMs, isBooked ? 0 : (await counts.count(key)) * intervalMs);
    }

    /** A route whose queue is known to be too long takes no time of the host's. */
    async function passKnownQueue(limit: Limit | null): Promise<Step> {
      if (limit?.intervalMs == null || booked.has(limit.key)) return "ON";
      const horizonMs = clocks.seenAheadMs(limit.key);
      return horizonMs <= reachMs() ? "ON" : queueFor(limit.key, limit.intervalMs, horizonMs, false);
    }

    const passSlots = createSlotPass({
      ...parts,
      hop,
      holder,
      nowMs,
      leftMs,
      reachMs,
      heldMs,
      stopped,
      back,
      onTaken() {
        giveBack = () => slots.give(holder);
      },
    });

    async function passSteps(): Promise<Step> {
      const [host, route] = limits;
      const steps = [
        passHold,
        () => passKnownQueue(route),
        () => passClock(host),
        () => passClock(route),
        // Here rather than behind the last step, where this look then costs nothing.
        passHold,
        () => passSlots(slotLimitsOf(limits)),
        passHold,
      ];
      for (const step of steps) {
        const answer = await step();
        if (answer !== "ON") return answer;
      }
      return "ON";
    }

    async function passOnce(): Promise<Step> {
      try {
        return await passSteps();
      } catch (error) {
        if (!parts.isOutage(error)) throw error;
        if (hop.isFirst && nowMs() - startedMs >= Math.min(waitMs, leftMs())) return back(0, SENT_BACK_MS);
        return (await pauses.wait(OUTAGE_MS * (0.5 + random() / 2), hop.stop)) ? "AGAIN" : stopped();
      }
    }

    async function pass(): Promise<HopVerdict> {
      let hasSlots = false;
      try {
        for (;;) {
          const answer = await passOnce();
          if (answer !== "AGAIN") {
            const verdict = answer !== "ON" ? answer : hop.stop.reason === null ? go() : stopped();
            hasSlots = verdict.kind === "GO";
            return verdict;
          }
          dropSlots();
          if (hop.stop.reason !== null) return stopped();
        }
      } finally {
        if (!hasSlots) dropSlots();
      }
    }

    function dropSlots(): void {
      giveBack?.();
      giveBack = undefined;
    }

    function go(): HopVerdict {
      const give = giveBack;
      return give === undefined ? GO_FREE : { kind: "GO", done: give };
    }

    return { pass, leave: () => leaveSeat?.() };
  }

  return {
    admit,
    booking() {
      const hostAtMs = booked.get(`host:${job.hostKey}`) ?? null;
      const routeAtMs = booked.get(`route:${job.route}`) ?? null;
      if (hostAtMs === null && routeAtMs === null) return null;
      return {
        hostKey: hostAtMs === null ? null : job.hostKey,
        hostAtMs,
        route: routeAtMs === null ? null : job.route,
        routeAtMs,
      };
    },
    waitedMs: () => Math.round(waitedMs),
  };
}

function readBooking(booking: Booking | null): Map<AdmissionKey, number> {
  const booked = new Map<AdmissionKey, number>();
  if (booking === null) return booked;
  if (booking.hostKey !== null && booking.hostAtMs !== null) booked.set(`host:${booking.hostKey}`, booking.hostAtMs);
  if (booking.route !== null && booking.routeAtMs !== null) booked.set(`route:${booking.route}`, booking.routeAtMs);
  return booked;
}
