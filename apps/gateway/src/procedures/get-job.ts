import { Id, Job, WaitSeconds } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A job; with a wait, as soon as it is terminal, or as it is when the wait is over. */
export const getJob = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "jobs:read" })
  .input(z.strictObject({ id: Id, waitSeconds: WaitSeconds.optional() }))
  .output(Job)
  .query(({ ctx, input, signal }) => {
    const { principal } = ctx;
    const intake = input.waitSeconds === undefined ? ctx.services.intake : ctx.services.waiting();
    return unwrap(intake.getJob.query({ principal, ...input }, ctx.call(signal, input.waitSeconds)));
  });
