/** The channels of lossy hints. Whoever misses one finds out by its own slower look. */
export const HINT_CHANNELS = {
  /** Ids of jobs that have just become terminal: whoever waits for one reads it again. */
  jobsEnded: "jobs.ended",
  /** Ids of running jobs that were cancelled: their worker lets go of them. */
  jobsCancelled: "jobs.cancelled",
} as const;
