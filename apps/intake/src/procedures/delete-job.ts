import { DeleteJobAnswer, DeleteJobCall } from "@keble-scraper/contract";
import { deleteJob as storeDelete } from "@keble-scraper/db/commands/intake";
import { procedure } from "../procedure.ts";

/** Erases an ended job, audited under the principal. CONFLICT while it, its event or a delivery is open. */
export const deleteJob = procedure
  .input(DeleteJobCall)
  .output(DeleteJobAnswer)
  .mutation(({ ctx, input: { principal, id, requestId } }) =>
    storeDelete(
      ctx.database.commands,
      { id, callerId: principal.callerId },
      { actor: principal.keyId, requestId },
      ctx.auditDays,
    ),
  );
