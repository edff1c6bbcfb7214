import { AttemptPage, AttemptQuery, Id } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of a job's ledger, oldest first. */
export const listAttempts = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:read" })
  .input(AttemptQuery.extend({ id: Id }))
  .output(AttemptPage)
  .query(({ ctx, input: { id, ...query }, signal }) =>
    unwrap(ctx.services.intake.listAttempts.query({ principal: ctx.principal, id, query }, ctx.call(signal))),
  );
