/** `monotonicMs` only measures spans; `wallMs` is milliseconds since the epoch. */
export type Clock = { monotonicMs(): number; wallMs(): number };

/** This machine's clocks. */
export const SYSTEM_CLOCK: Clock = { monotonicMs: () => performance.now(), wallMs: () => Date.now() };
