import { EndpointAnswer, failed, localFailure, PatchEndpointCall } from "@keble-scraper/contract";
import { type EndpointPatch, patchEndpoint as storePatch } from "@keble-scraper/db/commands/callbacks";
import { vetCallbackUrl } from "@keble-scraper/egress";
import { procedure } from "../context.ts";
import { managedCaller } from "../managed-caller.ts";

/**
 * Changes an endpoint. A new URL is vetted as at its registration. Disabling ends what waits as dead letters; enabling
 * sends none of it again: CONFLICT, to be repeated, while there is more of it than can be ended at once.
 */
export const patchEndpoint = procedure
  .input(PatchEndpointCall)
  .output(EndpointAnswer)
  .mutation(async ({ ctx, input: { principal, id, patch } }) => {
    const caller = managedCaller(principal);
    if (!caller.ok) return caller;
    const vetted = patch.url === undefined ? null : vetCallbackUrl(patch.url, ctx.policy);
    if (vetted?.ok === false) return failed(localFailure("TARGET_FORBIDDEN"));
    const disabler = principal.kind === "OPERATOR" ? ("OPERATOR" as const) : ("CALLER" as const);
    const change: EndpointPatch = {
      ...(vetted === null ? {} : { url: vetted.url.href }),
      ...(patch.events === undefined ? {} : { events: patch.events }),
      ...(patch.enabled === undefined ? {} : { disabledReason: patch.enabled ? null : disabler }),
    };
    const by = { actor: principal.keyId, requestId: ctx.requestId };
    return storePatch(ctx.database.commands, { id, callerId: caller.value }, change, by, {
      retentionDays: ctx.auditDays,
    });
  });
