import type { TerminalJobState } from "../machines/job-machine.ts";

/** A job that a command ended: whom to wake. `eventState` is null where no event was made. */
export type EndedJob = {
  readonly id: string;
  readonly callerId: string;
  readonly status: TerminalJobState;
  readonly eventId: string | null;
  readonly eventState: "PENDING" | "DEAD_LETTER" | null;
};
