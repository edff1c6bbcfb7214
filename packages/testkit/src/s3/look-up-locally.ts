import type { LookupAddress, LookupOptions } from "node:dns";

type Answer = (error: Error | null, address: string | LookupAddress[], family?: number) => void;

/**
 * A `lookup` for agents that answers 127.0.0.1 for every name below `localhost`, and an error for any other: with it
 * `new Agent({ lookup: lookUpLocally })` reaches the S3 stand-in by `<bucket>.localhost`.
 */
export function lookUpLocally(hostname: string, options: LookupOptions, answer: Answer): void {
  if (hostname !== "localhost" && !hostname.endsWith(".localhost")) {
    answer(new Error(`no test may look up ${hostname}`), "");
    return;
  }
  if (options.all === true) answer(null, [{ address: "127.0.0.1", family: 4 }]);
  else answer(null, "127.0.0.1", 4);
}
