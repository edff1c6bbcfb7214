import type { Clock } from "./clock.ts";
import type { Logger } from "./logger.ts";
import type { Signals } from "./signals.ts";

/** What a claim hands out. `token` is unique to the claim: a row claimed again has another one. */
export type Lease = { readonly id: string; readonly token: string };

/** Why a run's signal aborts: its lease is no longer ours, the process is ending, or the row was cancelled. */
export type AbortReason = "LEASE_LOST" | "DRAIN" | "CANCELLED";

/** What a run and its settle may know of their lease. */
export type RunControl = {
  /** Aborts with an `AbortReason` as its reason. Only `isTrusted` says whether a settle may still be sent. */
  readonly signal: AbortSignal;
  /** False from the trust deadline on (start of the last good renewal plus the lease), and once the lease is lost. */
  isTrusted(): boolean;
};

/** One lease in hand. */
export type HeldLease<L extends Lease> = { readonly lease: L; readonly control: RunControl };

/** The leases a worker has in hand: renewed as one explicit list, and let go of when that fails. */
export type LeaseKeeper<L extends Lease> = {
  /** Takes a lease claimed at `startedAtMs` (monotonic) in hand; `undefined` when it is too old to be trusted. */
  hold(lease: L, startedAtMs: number): HeldLease<L> | undefined;
  /** Lets a lease go: it is renewed no more. */
  drop(held: HeldLease<L>): void;
  abort(held: HeldLease<L>, reason: AbortReason): void;
  list(): readonly HeldLease<L>[];
  /** Takes the trust from everything in hand and lets go of it. */
  revokeAll(): void;
};

type Entry<L extends Lease> = HeldLease<L> & {
  readonly controller: AbortController;
  trustedUntilMs: number;
  isLost: boolean;
};

/**
 * Keeps leases: renews the list of what is in hand every quarter of a lease, aborts what does not come back, and aborts
 * everything at its trust deadline by one shared timer. A renewal has until the next one begins; an answer that comes
 * later extends nothing. Trust that was lost never returns.
 */
export function createLeaseKeeper<L extends Lease>(options: {
  readonly name: string;
  readonly leaseMs: number;
  renew(leases: readonly L[]): Promise<ReadonlySet<string>>;
  readonly clock: Clock;
  readonly signals: Signals;
  readonly logger: Logger;
}): LeaseKeeper<L> {
  const { name, leaseMs, clock, signals, logger } = options;
  const entries = new Map<HeldLease<L>, Entry<L>>();
  let renewTimer: NodeJS.Timeout | undefined;
  let trustTimer: NodeJS.Timeout | undefined;
  let round = 0;
  let isFailing = false;

  function isTrusted(entry: Entry<L>): boolean {
    return !entry.isLost && clock.monotonicMs() < entry.trustedUntilMs;
  }

  function lose(entry: Entry<L>, how: string): void {
    if (!entry.isLost) {
      entry.isLost = true;
      logger.warn({ loop: name, id: entry.lease.id, how }, "lease.lost");
    }
    entry.controller.abort("LEASE_LOST" satisfies AbortReason);
  }

  function loseExpired(): void {
    for (const entry of entries.values()) {
      if (!isTrusted(entry)) {
        lose(entry, "expired");
      }
    }
  }

  /** Armed at the earliest deadline known then; renewals move deadlines away, so it may find nothing and arm again. */
  function armTrustTimer(): void {
    if (trustTimer || entries.size === 0) {
      return;
    }
    const trusted = [...entries.values()].filter((entry) => !entry.isLost);
    if (trusted.length === 0) {
      return;
    }
    const earliestMs = trusted.reduce((least, entry) => Math.min(least, entry.trustedUntilMs), Infinity);
    trustTimer = setTimeout(
      () => {
        trustTimer = undefined;
        loseExpired();
        armTrustTimer();
      },
      Math.max(1, Math.ceil(earliestMs - clock.monotonicMs())),
    );
  }

  function armRenewTimer(): void {
    renewTimer ??= setTimeout(() => {
      renewTimer = undefined;
      void renewOnce();
    }, leaseMs / 4);
  }

  async function renewOnce(): Promise<void> {
    loseExpired();
    const listed = [...entries.values()].filter((entry) => !entry.isLost);
    if (entries.size > 0) {
      armRenewTimer();
    }
    if (listed.length === 0) {
      return;
    }
    round += 1;
    const mine = round;
    const startedAtMs = clock.monotonicMs();
    try {
      const kept = await options.renew(listed.map((entry) => entry.lease));
      if (mine !== round) {
        return;
      }
      for (const entry of listed) {
        keepOrLose(entry, kept, startedAtMs);
      }
      armTrustTimer();
      if (isFailing) {
        isFailing = false;
        logger.info({ loop: name }, "renewal.recovered");
      }
      await signals.reach("renewed", { kept: kept.size, listed: listed.length });
    } catch (error) {
      if (!isFailing) {
        isFailing = true;
        logger.error({ loop: name, err: error }, "renewal.failed");
      }
    }
  }

  function keepOrLose(entry: Entry<L>, kept: ReadonlySet<string>, startedAtMs: number): void {
    if (!entries.has(entry)) {
      return;
    }
    if (!kept.has(entry.lease.token)) {
      lose(entry, "not returned");
    } else if (isTrusted(entry)) {
      entry.trustedUntilMs = startedAtMs + leaseMs;
    }
  }

  function drop(held: HeldLease<L>): void {
    entries.delete(held);
    if (entries.size === 0) {
      clearTimeout(renewTimer);
      clearTimeout(trustTimer);
      renewTimer = undefined;
      trustTimer = undefined;
    }
  }

  return {
    hold(lease, startedAtMs) {
      const controller = new AbortController();
      const entry: Entry<L> = {
        lease,
        controller,
        trustedUntilMs: startedAtMs + leaseMs,
        isLost: false,
        control: { signal: controller.signal, isTrusted: () => isTrusted(entry) },
      };
      if (!isTrusted(entry)) {
        return undefined;
      }
      entries.set(entry, entry);
      armRenewTimer();
      armTrustTimer();
      return entry;
    },
    drop,
    abort(held, reason) {
      entries.get(held)?.controller.abort(reason);
    },
    list: () => [...entries.keys()],
    revokeAll() {
      for (const entry of entries.values()) {
        entry.isLost = true;
        entry.controller.abort("LEASE_LOST" satisfies AbortReason);
        drop(entry);
      }
    },
  };
}
