import { failed, GetArtifactAnswer, GetArtifactCall, localFailure, ok } from "@keble-scraper/contract";
import { findArtifact } from "@keble-scraper/db/commands/artifacts";
import { procedure } from "../context.ts";
import { visibleCaller } from "../visible-caller.ts";

/** One artifact's record. Another caller's is NOT_FOUND; a deleted one is an answer, in state DELETED. */
export const getArtifact = procedure
  .input(GetArtifactCall)
  .output(GetArtifactAnswer)
  .query(async ({ ctx, input }) => {
    const found = await findArtifact(ctx.database.reads, input.id, visibleCaller(input.principal));
    return found === null ? failed(localFailure("NOT_FOUND")) : ok(found.artifact);
  });
