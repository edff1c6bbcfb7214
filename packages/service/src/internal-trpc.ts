import { initTRPC, TRPCError } from "@trpc/server";
import type { Logger } from "./logger.ts";

/** What every internal call knows. */
export type CallContext = {
  /** The caller's, or one of our own when it sent none that is well-formed. */
  readonly requestId: string;
  /** Milliseconds since the epoch on this machine's clock. */
  readonly deadlineAt: number;
  /** Aborts when the caller goes away or the deadline passes. */
  readonly signal: AbortSignal;
  readonly logger: Logger;
};

/** The header names of an internal call. The deadline travels as what is left of it, so that clocks need not agree. */
export const REQUEST_ID_HEADER = "x-request-id";
export const DEADLINE_HEADER = "x-deadline-ms";

/** What of an error leaves the process: its code. Messages, causes and stacks stay in the log. */
const ERROR_TEXT = "internal call failed";

/**
 * The one `initTRPC` of the internal services. A procedure's context is the call's and the service's. Failures are the
 * values it returns; what it throws is a fault, logged here and answered by its code alone. A call whose deadline has
 * passed is refused before its procedure runs.
 */
export function createProcedures<C extends object>() {
  const t = initTRPC.context<CallContext & C>().create({
    isDev: false,
    allowOutsideOfServer: true,
    errorFormatter({ shape, error, ctx, path }) {
      const isFault = error.code === "INTERNAL_SERVER_ERROR";
      if (isFault) {
        ctx?.logger.error({ requestId: ctx.requestId, procedure: path, err: error.cause ?? error }, "call.faulted");
      }
      return {
        ...shape,
        message: ERROR_TEXT,
        data: { code: shape.data.code, httpStatus: shape.data.httpStatus },
      };
    },
  });
  const procedure = t.procedure.use(({ ctx, next }) => {
    // The signal speaks for the deadline: both come from the same timer.
    if ((ctx as CallContext).signal.aborted) {
      throw new TRPCError({ code: "TIMEOUT", message: "the deadline has passed" });
    }
    return next();
  });
  return { router: t.router, procedure };
}
