/** Stored states of a job. WAITING is derived by readers: QUEUED and due in the future. */
export const STORED_JOB_STATES = ["QUEUED", "RUNNING", "SUCCEEDED", "FAILED", "CANCELLED"] as const;
export type StoredJobState = (typeof STORED_JOB_STATES)[number];

/** States that a job never leaves. */
export const TERMINAL_JOB_STATES = ["SUCCEEDED", "FAILED", "CANCELLED"] as const satisfies readonly StoredJobState[];
export type TerminalJobState = (typeof TERMINAL_JOB_STATES)[number];

/** Every transition of a job, and the commands that make it. A pair that is not here never happens. */
export const JOB_TRANSITIONS = {
  QUEUED: { RUNNING: ["claim"], FAILED: ["expire"], CANCELLED: ["cancel"] },
  RUNNING: {
    QUEUED: ["settle", "release", "recover"],
    SUCCEEDED: ["settle"],
    FAILED: ["settle", "release", "recover", "expire"],
    CANCELLED: ["cancel"],
  },
  SUCCEEDED: {},
  FAILED: {},
  CANCELLED: {},
} as const satisfies Record<StoredJobState, Partial<Record<StoredJobState, readonly string[]>>>;
