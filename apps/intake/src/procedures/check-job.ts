import { CheckJobAnswer, CheckJobCall, SubmitJob, failed, localFailure, ok, zodDetails } from "@keble-scraper/contract";
import { hasCallbackEndpoint } from "@keble-scraper/db";
import { vetJob } from "../job-policy.ts";
import { procedure } from "../procedure.ts";

/** What a submit of the same body would meet; nothing is created. A malformed body fails, a refused one is an answer. */
export const checkJob = procedure
  .input(CheckJobCall)
  .output(CheckJobAnswer)
  .query(async ({ ctx, input }) => {
    const { callerId } = input.principal;
    if (callerId === null) return failed(localFailure("FORBIDDEN"));
    const parsed = SubmitJob.safeParse(input.body);
    if (!parsed.success) return failed({ ...localFailure("INVALID_REQUEST"), details: zodDetails(parsed.error) });
    const job = parsed.data;
    const known = await ctx.routes.list();
    const vetted = vetJob(job, { ...ctx, routes: known });
    const routes = job.routes.map(
      (route) => known.find((state) => state.route === route) ?? { route, available: false, reason: "not configured" },
    );
    const endpoint = job.callback?.endpoint;
    const isEndpointKnown =
      endpoint === undefined || (await hasCallbackEndpoint(ctx.database.commands, callerId, endpoint));
    const error = vetted.ok ? (isEndpointKnown ? null : localFailure("UNKNOWN_CALLBACK_ENDPOINT")) : vetted.failure;
    const base = { routes, worstCostMicros: 0 };
    return ok(error === null ? { allowed: true, ...base } : { allowed: false, error, ...base });
  });
