import { failed, GetStatsAnswer, GetStatsCall, localFailure, ok } from "@keble-scraper/contract";
import { procedure } from "../context.ts";

/** How the deployment is doing: for operators, whatever the gateway let through. */
export const getStats = procedure
  .input(GetStatsCall)
  .output(GetStatsAnswer)
  .query(async ({ ctx, input: { principal } }) =>
    principal.kind === "OPERATOR" ? ok(await ctx.readStats()) : failed(localFailure("FORBIDDEN")),
  );
