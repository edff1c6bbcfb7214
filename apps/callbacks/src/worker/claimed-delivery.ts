import type { DeliveryLease } from "@keble-scraper/db/commands/callbacks";

/** A delivery in hand. `body` is the stored bytes; null when the lease was lost before they were stored. */
export type ClaimedDelivery = DeliveryLease & { body(): Promise<string | null> };
