/** States of a delivery. */
export const DELIVERY_STATES = ["PENDING", "LEASED", "DELIVERED", "DEAD_LETTER"] as const;
export type DeliveryState = (typeof DELIVERY_STATES)[number];

/** Every transition of a delivery, and the commands that make it. */
export const DELIVERY_TRANSITIONS = {
  PENDING: { LEASED: ["claim-delivery"], DEAD_LETTER: ["close-deliveries"] },
  LEASED: {
    PENDING: ["settle-delivery", "recover-delivery"],
    DELIVERED: ["settle-delivery"],
    DEAD_LETTER: ["settle-delivery", "recover-delivery"],
  },
  DELIVERED: {},
  DEAD_LETTER: {},
} as const satisfies Record<DeliveryState, Partial<Record<DeliveryState, readonly string[]>>>;
