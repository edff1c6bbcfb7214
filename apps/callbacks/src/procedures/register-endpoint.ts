import { randomBytes } from "node:crypto";
import { failed, localFailure, ok, RegisterEndpointAnswer, RegisterEndpointCall } from "@keble-scraper/contract";
import { registerEndpoint as storeEndpoint } from "@keble-scraper/db/commands/callbacks";
import { vetCallbackUrl } from "@keble-scraper/egress";
import { v7 as uuidv7 } from "uuid";
import { procedure } from "../context.ts";
import { registeredCaller } from "../managed-caller.ts";

/** Standard Webhooks asks for 24 to 64 random bytes. */
const SECRET_BYTES = 32;

/**
 * Registers an endpoint. Its URL is vetted now, by the rule that each send repeats. The answer holds the signing secret;
 * what is stored is sealed.
 */
export const registerEndpoint = procedure
  .input(RegisterEndpointCall)
  .output(RegisterEndpointAnswer)
  .mutation(async ({ ctx, input: { principal, input } }) => {
    const caller = registeredCaller(principal, input.callerId);
    if (!caller.ok) return caller;
    if (input.ratePerSecond !== undefined) {
      const details = [{ path: "ratePerSecond", message: "This deployment does not have it." }];
      return failed({ ...localFailure("NOT_SUPPORTED"), details });
    }
    const vetted = vetCallbackUrl(input.url, ctx.policy);
    if (!vetted.ok) return failed(localFailure("TARGET_FORBIDDEN"));
    const id = uuidv7();
    const secret = randomBytes(SECRET_BYTES);
    const stored = await storeEndpoint(
      ctx.database.commands,
      {
        id,
        callerId: caller.value,
        name: input.name,
        url: vetted.url.href,
        events: input.events ?? null,
        attemptBudget: input.attemptBudget ?? ctx.defaults.attemptBudget,
        timeoutMs: input.timeoutMs ?? ctx.defaults.timeoutMs,
        maxConcurrency: input.maxConcurrency ?? ctx.defaults.maxConcurrency,
        secret: ctx.secrets.seal(secret, id),
      },
      { actor: principal.keyId, requestId: ctx.requestId },
      ctx.auditDays,
    );
    return stored.ok ? ok({ ...stored.value, secret: `whsec_${secret.toString("base64")}` }) : stored;
  });
