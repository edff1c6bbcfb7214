import { type Database, isDatabaseOutage, listJobsById } from "@keble-scraper/db";
import { claimDeliveries, type DeliveryLease, storePayloads } from "@keble-scraper/db/commands/callbacks";
import { buildPayload } from "./build-payload.ts";
import type { ClaimedDelivery, DeliveryBody } from "./claimed-delivery.ts";

/** Claims deliveries for one process. */
export type ClaimNextDeliveries = (
  freeSlots: number,
) => Promise<{ readonly leases: readonly ClaimedDelivery[]; readonly startedAtMs: number }>;

/**
 * A process's claims, round the ring of endpoints: one starts behind the endpoint that the last one ended with. The bytes
 * of first tries are built and stored for the whole batch in two statements, which the runs of the batch wait for. What
 * an outage keeps from being stored is UNAVAILABLE, and no fault of the deliveries.
 */
export function createClaimNextDeliveries(options: {
  readonly database: Pick<Database, "commands" | "reads">;
  readonly leaseSeconds: number;
  monotonicMs(): number;
}): ClaimNextDeliveries {
  const { commands, reads } = options.database;
  let afterEndpointId: string | null = null;

  async function storeBodies(leases: readonly DeliveryLease[]): Promise<ReadonlyMap<string, string>> {
    const jobs = new Map(
      (
        await listJobsById(
          reads,
          leases.map((lease) => lease.jobId),
        )
      ).map((job) => [job.id, job]),
    );
    const payloads = leases.map(({ id, token, eventId, eventType, occurredAt, jobId }) => {
      const job = jobs.get(jobId);
      if (job === undefined) throw new Error("the job of an open event is gone");
      return { id, token, payload: buildPayload({ id: eventId, type: eventType, occurredAt, job }) };
    });
    return storePayloads(commands, payloads);
  }

  return async (freeSlots) => {
    const startedAtMs = options.monotonicMs();
    const { leaseSeconds } = options;
    const batch = await claimDeliveries(commands, { slots: freeSlots, leaseSeconds, afterEndpointId });
    afterEndpointId = batch.lastEndpointId;
    const fresh = batch.leases.filter((lease) => lease.payload === null);
    const stored = fresh.length === 0 ? Promise.resolve(new Map<string, string>()) : storeBodies(fresh);
    // Every run awaits it; a run that ends before must not make a rejection an unhandled one.
    stored.catch(() => undefined);
    const bodyOf = async (lease: DeliveryLease): Promise<DeliveryBody> => {
      try {
        const bytes = lease.payload ?? (await stored).get(lease.token);
        return bytes === undefined ? { kind: "LOST" } : { kind: "STORED", bytes };
      } catch (error) {
        if (isDatabaseOutage(error)) return { kind: "UNAVAILABLE" };
        throw error;
      }
    };
    return { leases: batch.leases.map((lease) => ({ ...lease, body: () => bodyOf(lease) })), startedAtMs };
  };
}
