import fc from "fast-check";
import { afterAll, beforeAll, expect, it } from "vitest";
import {
  claimDeliveries,
  closeStrandedDeliveries,
  type DeliveryLease,
  type NewEndpoint,
  patchEndpoint,
  recoverDeliveries,
  settleDeliveries,
  type TryReport,
} from "../src/commands/callbacks/index.ts";
import {
  BY,
  CLOCKS,
  delivered,
  deliveryOf,
  endJob,
  expireLease,
  gone,
  makeDue,
  refused,
  registerOne,
  replayRow,
} from "./callback-fixtures.ts";
import { openTestDatabase } from "./job-fixtures.ts";

let database: Awaited<ReturnType<typeof openTestDatabase>>;
beforeAll(async () => {
  database = await openTestDatabase();
});
afterAll(() => database[Symbol.asyncDispose]());

type Row = {
  state: string;
  reason: string | null;
  used: number;
  budget: number;
  token: string | null;
  outcomes: string[];
  eventState: string;
  eventReason: string | null;
  /** Whether event and job have their expiry. */
  expiring: boolean;
};
type Modelled = Row & { readonly endpoint: number; readonly eventId: string; readonly isReplay: boolean };
type Endpoint = { readonly stored: NewEndpoint; readonly room: number; isOpen: boolean };

const OUTCOMES = ["SUCCEEDED", "FAILED", "UNKNOWN", "UNSENT", "GONE", "FORBIDDEN"] as const;
type Op =
  | { readonly do: "end" | "disable" | "enable"; readonly endpoint: number }
  | { readonly do: "claim"; readonly slots: number }
  | { readonly do: "settle"; readonly lease: number; readonly outcome: (typeof OUTCOMES)[number] }
  | { readonly do: "lose"; readonly lease: number }
  | { readonly do: "replay"; readonly delivery: number }
  | { readonly do: "sweep" };

const endpointIndex = fc.nat({ max: 1 });
const op: fc.Arbitrary<Op> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("end" as const), endpoint: endpointIndex }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("claim" as const), slots: fc.integer({ min: 1, max: 5 }) }) },
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      lease: fc.nat({ max: 30 }),
      outcome: fc.constantFrom(...OUTCOMES),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant("lose" as const), lease: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("replay" as const), delivery: fc.nat({ max: 30 }) }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("disable" as const), endpoint: endpointIndex }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("enable" as const), endpoint: endpointIndex }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("sweep" as const) }) },
);

class World {
  readonly endpoints: Endpoint[] = [];
  readonly deliveries = new Map<string, Modelled>();
  readonly leases: DeliveryLease[] = [];

  async open(): Promise<this> {
    for (const room of [1, 3]) {
      const stored = await registerOne(database, { maxConcurrency: room, attemptBudget: 2 });
      this.endpoints.push({ stored, room, isOpen: true });
    }
    return this;
  }

  async apply(step: Op): Promise<void> {
    switch (step.do) {
      case "end":
        return this.#end(step.endpoint);
      case "claim":
        return this.#claim(step.slots);
      case "settle":
        return this.#settle(step.lease, step.outcome);
      case "lose":
        return this.#lose(step.lease);
      case "replay":
        return this.#replay(step.delivery);
      case "disable":
      case "enable":
        return this.#patch(step.endpoint, step.do);
      case "sweep":
        expect(await closeStrandedDeliveries(database.commands, 100)).toBe(0);
    }
  }

  async #end(endpoint: number): Promise<void> {
    const { stored, isOpen } = this.endpoints[endpoint]!;
    const { eventId } = await endJob(database, stored);
    const state = isOpen ? "PENDING" : "DEAD_LETTER";
    const reason = isOpen ? null : "ENDPOINT_DISABLED";
    this.deliveries.set(await deliveryOf(database, eventId), {
      endpoint,
      eventId,
      isReplay: false,
      state,
      reason,
      used: 0,
      budget: 2,
      token: null,
      outcomes: [],
      eventState: state,
      eventReason: reason,
      expiring: false,
    });
  }

  async #claim(slots: number): Promise<void> {
    await makeDue(database);
    const { leases } = await claimDeliveries(database.commands, { slots, leaseSeconds: 60, afterEndpointId: null });
    const couldClaim = this.endpoints.some(
      (endpoint, index) =>
        endpoint.isOpen && this.#of(index, "LEASED") < endpoint.room && this.#of(index, "PENDING") > 0,
    );
    expect(leases.length > 0).toBe(couldClaim);
    expect(leases.length).toBeLessThanOrEqual(slots);
    for (const lease of leases) {
      const delivery = this.deliveries.get(lease.id)!;
      expect(delivery.state).toBe("PENDING");
      expect(this.endpoints[delivery.endpoint]!.isOpen).toBe(true);
      Object.assign(delivery, { state: "LEASED", used: delivery.used + 1, token: lease.token });
      this.#moveEvent(delivery, "LEASED", null);
      expect(lease.attemptsUsed).toBe(delivery.used);
      this.leases.push(lease);
    }
    for (const [index, { room }] of this.endpoints.entries())
      expect(this.#of(index, "LEASED")).toBeLessThanOrEqual(room);
  }

  async #settle(index: number, outcome: (typeof OUTCOMES)[number]): Promise<void> {
    const lease = this.leases[index % Math.max(1, this.leases.length)];
    if (lease === undefined) return;
    const [verdict] = await settleDeliveries(database.commands, [reportOf(lease, outcome)], CLOCKS);
    const delivery = this.deliveries.get(lease.id)!;
    if (delivery.token !== lease.token) {
      expect(verdict!.verdict).toBe("STALE");
      return;
    }
    expect(verdict!.verdict).toBe("SETTLED");
    const endpoint = this.endpoints[delivery.endpoint]!;
    if (outcome === "UNSENT") delivery.used -= 1;
    else delivery.outcomes.push(outcome === "SUCCEEDED" || outcome === "UNKNOWN" ? outcome : "FAILED");
    if (outcome === "SUCCEEDED") this.#move(delivery, "DELIVERED", null);
    else if (!endpoint.isOpen || outcome === "GONE") this.#move(delivery, "DEAD_LETTER", "ENDPOINT_DISABLED");
    else if (outcome === "FORBIDDEN") this.#move(delivery, "DEAD_LETTER", "TARGET_FORBIDDEN");
    else if (delivery.used >= delivery.budget) this.#move(delivery, "DEAD_LETTER", "BUDGET_SPENT");
    else this.#move(delivery, "PENDING", null);
    if (outcome === "GONE") this.#close(delivery.endpoint);
  }

  async #lose(index: number): Promise<void> {
    const lease = this.leases[index % Math.max(1, this.leases.length)];
    const delivery = lease && this.deliveries.get(lease.id)!;
    if (delivery?.state !== "LEASED") return;
    await expireLease(database, lease!.id);
    expect((await recoverDeliveries(database.commands, 10)).recovered).toBe(1);
    delivery.outcomes.push("UNKNOWN");
    if (!this.endpoints[delivery.endpoint]!.isOpen) this.#move(delivery, "DEAD_LETTER", "ENDPOINT_DISABLED");
    else if (delivery.used >= delivery.budget) this.#move(delivery, "DEAD_LETTER", "BUDGET_SPENT");
    else this.#move(delivery, "PENDING", null);
  }

  async #replay(index: number): Promise<void> {
    const first = [...this.deliveries.values()][index % Math.max(1, this.deliveries.size)];
    const others = [...this.deliveries.values()].filter((delivery) => delivery.eventId === first?.eventId);
    if (first?.eventState !== "DELIVERED" || others.length > 1 || !this.endpoints[first.endpoint]!.isOpen) return;
    const id = await replayRow(database, first.eventId);
    this.deliveries.set(id, {
      ...first,
      isReplay: true,
      state: "PENDING",
      reason: null,
      used: 0,
      budget: 3,
      token: null,
      outcomes: [],
    });
  }

  async #patch(index: number, what: "disable" | "enable"): Promise<void> {
    const endpoint = this.endpoints[index]!;
    const disabledReason = what === "disable" ? ("OPERATOR" as const) : null;
    await patchEndpoint(database.commands, { id: endpoint.stored.id, callerId: null }, { disabledReason }, BY);
    if (what === "enable") endpoint.isOpen = true;
    else this.#close(index);
  }

  #close(index: number): void {
    this.endpoints[index]!.isOpen = false;
    for (const delivery of this.deliveries.values()) {
      if (delivery.endpoint === index && delivery.state === "PENDING") {
        this.#move(delivery, "DEAD_LETTER", "ENDPOINT_DISABLED");
      }
    }
  }

  #move(delivery: Modelled, state: string, reason: string | null): void {
    Object.assign(delivery, { state, reason, token: null });
    this.#moveEvent(delivery, state, reason);
  }

  /** An event that was delivered stays so. */
  #moveEvent(delivery: Modelled, state: string, reason: string | null): void {
    if (delivery.isReplay) return;
    Object.assign(delivery, { eventState: state, eventReason: reason, expiring: state === "DELIVERED" });
  }

  #of(endpoint: number, state: string): number {
    return [...this.deliveries.values()].filter((row) => row.endpoint === endpoint && row.state === state).length;
  }

  async check(): Promise<void> {
    const rows = await database.commands<(Row & { id: string })[]>`
      select d.id, d.state, d.dead_letter_reason as reason, d.attempts_used as used, d.attempt_budget as budget,
        d.lease_token as token, e.state as "eventState", e.dead_letter_reason as "eventReason",
        e.expires_at is not null and j.expires_at is not null as expiring,
        coalesce((select jsonb_agg(t.outcome order by t.ordinal) from callback_tries t where t.delivery_id = d.id), '[]') as outcomes
      from callback_deliveries d join callback_events e on e.id = d.event_id join jobs j on j.id = e.job_id
      where d.endpoint_id = any(${this.endpoints.map((endpoint) => endpoint.stored.id)})`;
    const stored = new Map(rows.map(({ id, ...row }) => [id, { ...row }]));
    const expected = new Map(
      [...this.deliveries].map(([id, { endpoint: _endpoint, eventId: _eventId, isReplay: _isReplay, ...row }]) => [
        id,
        row,
      ]),
    );
    expect(stored).toEqual(expected);
  }

  /** Nothing of this world is left to claim in the next. */
  async close(): Promise<void> {
    const ids = this.endpoints.map((endpoint) => endpoint.stored.id);
    await database.commands`update callback_endpoints set deleted_at = clock_timestamp() where id = any(${ids})`;
    for (const lease of this.leases) await expireLease(database, lease.id);
    await recoverDeliveries(database.commands, 1_000);
    await closeStrandedDeliveries(database.commands, 1_000);
  }
}

function reportOf(lease: DeliveryLease, outcome: (typeof OUTCOMES)[number]): TryReport {
  switch (outcome) {
    case "SUCCEEDED":
      return delivered(lease);
    case "FAILED":
      return refused(lease);
    case "UNKNOWN":
      return refused(lease, { outcome: "UNKNOWN", httpStatus: null });
    case "UNSENT":
      return delivered(lease, { outcome: "UNSENT", httpStatus: null, latencyMs: null });
    case "GONE":
      return gone(lease);
    case "FORBIDDEN":
      return refused(lease, { next: "FORBIDDEN", httpStatus: null });
  }
}

it("C2 any order of ends, claims, settles, losses, replays and closings leaves what the model says", async () => {
  const seed = Number(process.env["SEED"] ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`callbacks model: SEED=${seed}`);
  const world = fc.asyncProperty(fc.array(op, { minLength: 10, maxLength: 60 }), async (steps) => {
    const model = await new World().open();
    try {
      for (const step of steps) await model.apply(step);
      await model.check();
    } finally {
      await model.close();
    }
  });
  await expect(fc.assert(world, { seed, numRuns: 25, endOnFailure: true })).resolves.toBeUndefined();
});
