/**
 * Named points that long-lived code passes. In production they do nothing; a test waits on them instead of sleeping, and
 * may hold the code there or end the process. A caller awaits the answer, so a held point holds its caller.
 */
export type Signals = {
  reach(point: string, detail?: unknown): Promise<void> | void;
};

/** Passes every point without stopping. */
export const NO_SIGNALS: Signals = {
  reach() {
    return undefined;
  },
};
