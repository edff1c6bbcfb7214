import { DeleteEndpointAnswer, DeleteEndpointCall } from "@keble-scraper/contract";
import { deleteEndpoint as storeDelete } from "@keble-scraper/db/commands/callbacks";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/** Deletes an endpoint. CONFLICT while events are open, unless forced: then those that wait become dead letters. */
export const deleteEndpoint = procedure
  .input(DeleteEndpointCall)
  .output(DeleteEndpointAnswer)
  .mutation(async ({ ctx, input: { principal, id, force } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const by = { actor: principal.keyId, requestId: ctx.requestId };
    const open = force ? "CLOSE_OPEN" : "REFUSE_OPEN";
    return storeDelete(ctx.database.commands, { id, callerId: caller.value }, by, {
      open,
      retentionDays: ctx.auditDays,
    });
  });
