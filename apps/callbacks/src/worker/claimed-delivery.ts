import type { DeliveryLease } from "@keble-scraper/db/commands/callbacks";

/**
 * What a delivery sends. LOST: the lease went before the bytes were stored. UNAVAILABLE: the database could not be asked,
 * so nothing may be sent; the bytes may or may not be stored.
 */
export type DeliveryBody =
  | { readonly kind: "STORED"; readonly bytes: string }
  | { readonly kind: "LOST" }
  | { readonly kind: "UNAVAILABLE" };

/** A delivery in hand. `body` rejects only with faults. */
export type ClaimedDelivery = DeliveryLease & { body(): Promise<DeliveryBody> };
