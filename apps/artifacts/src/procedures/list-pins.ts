import { failed, ListPinsAnswer, ListPinsCall, localFailure, ok } from "@keble-scraper/contract";
import { listPins as listPinRows, readOwnerCursor } from "@keble-scraper/db";
import { findArtifact } from "@keble-scraper/db/commands/artifacts";
import { procedure } from "../context.ts";
import { visibleCaller } from "../visible-caller.ts";

/** A page of an artifact's pins, by owner, also of a deleted one. Another caller's is NOT_FOUND. */
export const listPins = procedure
  .input(ListPinsCall)
  .output(ListPinsAnswer)
  .query(async ({ ctx, input: { artifactId, principal, query } }) => {
    const after = readOwnerCursor(query.cursor);
    if (!after.ok) return after;
    const found = await findArtifact(ctx.database.reads, artifactId, visibleCaller(principal));
    if (found === null) return failed(localFailure("NOT_FOUND"));
    return ok(await listPinRows(ctx.database.reads, { artifactId, afterOwner: after.value, limit: query.limit }));
  });
