import { type Clock, SYSTEM_CLOCK } from "./clock.ts";
import type { Component } from "./component.ts";
import { createLeaseKeeper, type HeldLease, type Lease, type RunControl } from "./lease-keeper.ts";
import type { Logger } from "./logger.ts";
import { NO_SIGNALS, type Signals } from "./signals.ts";

/** Claims leases, runs them side by side and settles them, until it is stopped. */
export type ClaimLoop<L extends Lease> = Component & {
  /** Says that there may be work. Never throws, never waits; any number of pokes during a claim make one more claim. */
  poke(): void;
  /** Aborts the runs of the leases that are meant, with `CANCELLED`. By token it hits one attempt, by id any of a row. */
  abort(isMeant: (lease: L) => boolean): void;
  /** Runs in progress; a run that ended and waits for its settle is not counted. */
  readonly running: number;
};

/** What a loop needs from its worker. */
export type ClaimLoopOptions<L extends Lease, O> = {
  readonly name: string;
  /** Runs side by side. */
  readonly slots: number;
  /** How often it claims unasked, give or take a tenth. */
  readonly pollMs: number;
  readonly leaseMs: number;
  /** Ended runs that may wait for their settle without holding their slot. 0: a slot is free after its settle only. */
  readonly unsettledMax: number;
  /**
   * Claims at most `freeSlots` rows. `running` is all that is in hand, settles included. `startedAtMs` is the monotonic
   * moment before the claim was sent; a plain list counts from the call.
   */
  claim(
    freeSlots: number,
    running: readonly L[],
  ): Promise<{ readonly leases: readonly L[]; readonly startedAtMs: number } | readonly L[]>;
  /** Renews a list; answers the tokens that are still ours. Its answer counts until the next renewal begins. */
  renew(leases: readonly L[]): Promise<ReadonlySet<string>>;
  /** Does the work; never throws for an expected outcome. Goes on until its signal aborts, then ends soon. */
  run(lease: L, control: RunControl): Promise<O>;
  /**
   * Settles an outcome. Called for every outcome whose lease is trusted then, also after DRAIN and CANCELLED; whether it
   * may still write later is for `control.isTrusted` to say, not for the signal.
   */
  finish(lease: L, outcome: O, control: RunControl): Promise<void>;
  /** Lets go of an outcome that is not settled, because its lease is trusted no more. Absent: there is nothing to let go. */
  discard?(outcome: O): Promise<void>;
  /** Told of a run or settle that threw. Its lease is in hand no more and expires by itself. */
  onFault(lease: L, error: unknown): void;
  readonly clock?: Clock;
  readonly signals?: Signals;
  readonly random?: () => number;
  readonly logger: Logger;
};

/** Free slots that are worth a claim while others are busy: fewer, larger claims cost Postgres a third less (measured). */
const CLAIM_WORTH_SLOTS = 16;
/** A wish to claim waits at most this long for more free slots, so that slow runs never starve the few slots beside them. */
const CLAIM_WISH_MS = 20;
/** Wait after a first failed claim; doubled up to the poll interval. */
const CLAIM_BACKOFF_MS = 100;
/** How long after the end of a drain's grace aborted runs have to end; less than what a container lets a part overrun. */
const DRAIN_OVERRUN_MS = 4_000;

type Phase = "IDLE" | "RUNNING" | "DRAINING";

/** Puts a claim loop together; it does nothing before `start`, and may be started again after `stop`. */
export function createClaimLoop<L extends Lease, O>(options: ClaimLoopOptions<L, O>): ClaimLoop<L> {
  const { name, slots, logger } = options;
  const clock = options.clock ?? SYSTEM_CLOCK;
  const signals = options.signals ?? NO_SIGNALS;
  const random = options.random ?? Math.random;
  const keeper = createLeaseKeeper<L>({
    name,
    leaseMs: options.leaseMs,
    renew: (leases) => options.renew(leases),
    clock,
    signals,
    logger,
  });
  /** In hand and running, as opposed to waiting for a settle. */
  const executing = new Set<HeldLease<L>>();
  let phase: Phase = "IDLE";
  let isClaiming = false;
  /** There may be work: a poke, a poll, or a claim that found some. Cleared before a claim, so that nothing is missed. */
  let isWanted = false;
  let isPollDue = false;
  let isWishOld = false;
  let failures = 0;
  let pollTimer: NodeJS.Timeout | undefined;
  let wishTimer: NodeJS.Timeout | undefined;
  let backoffTimer: NodeJS.Timeout | undefined;
  let onQuiet: (() => void) | undefined;
  let stopping: Promise<void> | undefined;

  function freeSlots(): number {
    const unsettled = keeper.list().length - executing.size;
    return slots - executing.size - Math.max(0, unsettled - options.unsettledMax);
  }

  function maybeClaim(): void {
    if (phase !== "RUNNING" || isClaiming || !isWanted || backoffTimer) {
      return;
    }
    const free = freeSlots();
    if (free <= 0) {
      return;
    }
    if (free >= Math.min(CLAIM_WORTH_SLOTS, slots) || executing.size === 0 || isPollDue || isWishOld) {
      void claimOnce(free);
    } else {
      wishTimer ??= setTimeout(() => {
        wishTimer = undefined;
        isWishOld = true;
        maybeClaim();
      }, CLAIM_WISH_MS);
    }
  }

  async function claimOnce(free: number): Promise<void> {
    isClaiming = true;
    isWanted = false;
    isPollDue = false;
    isWishOld = false;
    clearTimeout(wishTimer);
    wishTimer = undefined;
    try {
      const startedAtMs = clock.monotonicMs();
      const claimed = await options.claim(
        free,
        keeper.list().map((held) => held.lease),
      );
      const batch = "leases" in claimed ? claimed : { leases: claimed, startedAtMs };
      if (failures > 0) {
        failures = 0;
        logger.info({ loop: name }, "claim.recovered");
      }
      // A batch that found work may have left some: claims go on until one comes back empty.
      isWanted ||= batch.leases.length > 0;
      for (const lease of batch.leases) {
        begin(lease, batch.startedAtMs);
      }
      await signals.reach(batch.leases.length > 0 ? "claimed" : "claim.empty", batch.leases);
    } catch (error) {
      backOff(error);
    } finally {
      isClaiming = false;
    }
    if (phase === "RUNNING") {
      armPoll();
      maybeClaim();
    }
    checkQuiet();
  }

  function backOff(error: unknown): void {
    failures += 1;
    if (failures === 1) {
      logger.error({ loop: name, err: error }, "claim.failed");
    }
    isWanted = true;
    if (phase !== "RUNNING") {
      return;
    }
    const ceilingMs = Math.min(CLAIM_BACKOFF_MS * 2 ** Math.min(failures - 1, 20), options.pollMs);
    backoffTimer = setTimeout(
      () => {
        backoffTimer = undefined;
        isPollDue = true;
        maybeClaim();
      },
      ceilingMs * (0.5 + random() / 2),
    );
  }

  function armPoll(): void {
    clearTimeout(pollTimer);
    pollTimer = setTimeout(
      () => {
        isPollDue = true;
        isWanted = true;
        maybeClaim();
      },
      options.pollMs * (0.9 + random() * 0.2),
    );
  }

  function begin(lease: L, startedAtMs: number): void {
    // A claim that outlived the whole drain: nobody would wait for its runs, so its leases expire by themselves.
    const held = phase === "IDLE" ? undefined : keeper.hold(lease, startedAtMs);
    if (!held) {
      logger.warn({ loop: name, id: lease.id }, "lease.came_late");
      return;
    }
    executing.add(held);
    if (phase === "DRAINING") {
      // The claim was under way when the drain began. It has sent nothing: its run hands it back at once.
      keeper.abort(held, "DRAIN");
    }
    void execute(held);
  }

  async function execute(held: HeldLease<L>): Promise<void> {
    const { lease, control } = held;
    try {
      const outcome = await options.run(lease, control);
      await signals.reach("run.ended", lease);
      executing.delete(held);
      maybeClaim();
      if (control.isTrusted()) {
        await options.finish(lease, outcome, control);
        await signals.reach("finished", lease);
      } else {
        logger.warn({ loop: name, id: lease.id }, "outcome.suppressed");
        await options.discard?.(outcome);
        await signals.reach("outcome.discarded", lease);
      }
    } catch (error) {
      report(lease, error);
    } finally {
      executing.delete(held);
      keeper.drop(held);
      maybeClaim();
      checkQuiet();
    }
  }

  function report(lease: L, error: unknown): void {
    try {
      options.onFault(lease, error);
    } catch (fault) {
      logger.error({ loop: name, id: lease.id, err: fault }, "fault_report.failed");
    }
  }

  function checkQuiet(): void {
    if (!isClaiming && keeper.list().length === 0) {
      onQuiet?.();
    }
  }

  function clearTimers(): void {
    clearTimeout(pollTimer);
    clearTimeout(wishTimer);
    clearTimeout(backoffTimer);
    pollTimer = undefined;
    wishTimer = undefined;
    backoffTimer = undefined;
  }

  async function drain(deadline: number): Promise<void> {
    phase = "DRAINING";
    clearTimers();
    const quiet = new Promise<void>((resolve) => {
      onQuiet = resolve;
    });
    const graceMs = Math.max(0, deadline - performance.now());
    const graceTimer = setTimeout(() => {
      for (const held of executing) {
        keeper.abort(held, "DRAIN");
      }
    }, graceMs);
    const overrunTimer = setTimeout(() => {
      logger.error({ loop: name, held: keeper.list().length }, "drain.gave_up");
      keeper.revokeAll();
      executing.clear();
      onQuiet?.();
    }, graceMs + DRAIN_OVERRUN_MS);
    checkQuiet();
    await quiet;
    clearTimeout(graceTimer);
    clearTimeout(overrunTimer);
    onQuiet = undefined;
    phase = "IDLE";
  }

  return {
    name,
    get running() {
      return executing.size;
    },
    async start(signal) {
      signal.throwIfAborted();
      if (phase === "DRAINING") {
        await stopping;
      }
      if (phase === "IDLE") {
        phase = "RUNNING";
        stopping = undefined;
        isWanted = true;
        isPollDue = true;
        maybeClaim();
      }
    },
    stop(deadline) {
      if (phase === "IDLE") {
        return stopping ?? Promise.resolve();
      }
      stopping ??= drain(deadline);
      return stopping;
    },
    poke() {
      isWanted = true;
      maybeClaim();
    },
    abort(isMeant) {
      for (const held of executing) {
        if (isMeant(held.lease)) {
          keeper.abort(held, "CANCELLED");
        }
      }
    },
  };
}
