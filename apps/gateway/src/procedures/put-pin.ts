import { Id, PinOwner, PutPin, PutPinResult } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Keeps an artifact for an owner, or releases it: the newest revision stands. CONFLICT: this revision with another expiry. */
export const putPin = apiProcedure({ kinds: ["SERVICE"], scope: "artifacts:pin" })
  .input(PutPin.extend({ id: Id, owner: PinOwner }))
  .output(PutPinResult)
  .mutation(({ ctx, input: { id, owner, ...pin }, signal }) => {
    const { principal, requestId } = ctx;
    const call = { principal, artifactId: id, owner, pin, requestId };
    return unwrap(ctx.services.artifacts.putPin.mutate(call, ctx.call(signal)));
  });
