import type { BodySink } from "./body-stage.ts";
import type { FetchOutcome } from "./fetch-outcome.ts";
import type { FetchControl, FetchRequest } from "./fetch-request.ts";

/** One way out. Made once per process; owns its connections, browsers and timers until it is closed. */
export type Transport = {
  /**
   * One attempt: from the first URL through at most five redirects to a final response, whose decoded body goes to `sink`
   * chunk by chunk. Nothing is written for a response that is not acceptable. Rejects only with faults, the sink's
   * among them. However it ends, nothing of it stays open but a connection that may serve again.
   */
  fetch(request: FetchRequest, sink: BodySink, control: FetchControl): Promise<FetchOutcome>;
  /** Waits for running attempts until `deadline` (monotonic milliseconds), then aborts them; closes everything it owns. Idempotent. */
  close(deadline: number): Promise<void>;
  /** Sockets that are being dialled, in use or at rest. */
  sockets(): number;
};
