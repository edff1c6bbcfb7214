import { PutPinAnswer, PutPinCall } from "@keble-scraper/contract";
import { putPin as putPinRow } from "@keble-scraper/db/commands/artifacts";
import { procedure } from "../context.ts";
import { visibleCaller } from "../visible-caller.ts";

/** Keeps an artifact for an owner, or releases it. Another caller's is NOT_FOUND, a deleted one GONE. */
export const putPin = procedure
  .input(PutPinCall)
  .output(PutPinAnswer)
  .mutation(({ ctx, input }) => {
    const { artifactId, owner, principal, requestId } = input;
    const { expiresAt, retentionRevision } = input.pin;
    return putPinRow(
      ctx.database.commands,
      {
        artifactId,
        callerId: visibleCaller(principal),
        owner,
        retentionRevision,
        // Whole milliseconds from here on: what is compared is what is kept.
        expiresAt: expiresAt === null ? null : new Date(expiresAt),
      },
      { actor: principal.keyId, requestId },
      ctx.auditDays,
    );
  });
