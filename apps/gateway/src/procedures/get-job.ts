import { Id, Job, WaitSeconds } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A job; with a wait, as soon as it is terminal, or as it is when the wait is over. */
export const getJob = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:read" })
  .input(z.strictObject({ id: Id, waitSeconds: WaitSeconds.optional() }))
  .output(Job)
  .query(({ ctx, input: { id, waitSeconds: wanted }, signal }) =>
    unwrap(
      ctx.services.awaitJob({ principal: ctx.principal, id }, wanted, (waitSeconds) => ctx.call(signal, waitSeconds)),
    ),
  );
