import { type DetailedFailure, type Principal, type ServiceResult, toErrorEnvelope } from "@keble-scraper/contract";
import { initTRPC, type TRPCError } from "@trpc/server";
import { type Access, findDenial } from "./access.ts";
import { ApiFailure, httpStatusOf, toFailure } from "./api-failure.ts";
import type { ApiContext } from "./context.ts";
import type { CallOptions } from "./services.ts";

/** A call to a service that does not wait ends within this, in milliseconds. A batch of 1,000 takes well under a second. */
const CALL_MS = 10_000;
/** What a service has to answer once a wait is over, in milliseconds. */
const AFTER_WAIT_MS = 5_000;

/** Which request an error belongs to: tRPC's own may arise before there is a context. */
const requestIds = new WeakMap<TRPCError, string>();

const t = initTRPC
  .context<ApiContext>()
  .meta<Access>()
  .create({
    isDev: false,
    allowOutsideOfServer: true,
    errorFormatter({ error, shape }) {
      const failure = toFailure(error);
      const envelope = toErrorEnvelope(failure, { requestId: requestIds.get(error) ?? "" });
      return {
        code: shape.code,
        message: failure.message,
        data: { ...envelope, code: shape.data.code, httpStatus: httpStatusOf(failure) },
      };
    },
  });

/** The public router's builder. */
export const publicRouter = t.router;

/** Calls the public router without HTTP. */
export const { createCallerFactory } = t;

/** Says which request an error belongs to, so that its envelope can name it. */
export function noteRequest(error: TRPCError, requestId: string): void {
  requestIds.set(error, requestId);
}

/** A procedure for those whom `access` names: 401 without a key, 403 with another's, both before the input is looked at. */
export function apiProcedure(access: Access) {
  return t.procedure.meta(access).use(({ ctx, next }) => {
    if (!ctx.caller.ok) {
      throw new ApiFailure(ctx.caller.failure);
    }
    const principal: Principal = ctx.caller.value;
    const denied = findDenial(principal, access);
    if (denied !== null) {
      throw new ApiFailure(denied);
    }
    const call = (signal: AbortSignal | undefined, waitSeconds?: number): CallOptions => ({
      context: {
        requestId: ctx.requestId,
        deadlineAt: ctx.clock.wallMs() + (waitSeconds === undefined ? CALL_MS : waitSeconds * 1_000 + AFTER_WAIT_MS),
      },
      ...(signal === undefined ? {} : { signal }),
    });
    return next({ ctx: { principal, call } });
  });
}

/** The value of a service's answer; throws its failure as an ApiFailure. */
export async function unwrap<T>(answer: Promise<ServiceResult<T>>): Promise<T> {
  const result = await answer;
  if (result.ok) {
    return result.value;
  }
  const failure: DetailedFailure = result.failure;
  throw new ApiFailure(failure);
}
