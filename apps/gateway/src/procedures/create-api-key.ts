import { CreateApiKey, CreatedApiKey } from "@keble-scraper/contract";
import { invalidRequest } from "../api-failure.ts";
import { apiProcedure } from "../public-trpc.ts";

/** Makes a key that is of use: one that has expired already is refused. The answer holds its secret, this once. */
export const createApiKey = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(CreateApiKey)
  .output(CreatedApiKey)
  .mutation(({ ctx, input }) => {
    if (input.expiresAt !== undefined && Date.parse(input.expiresAt) <= ctx.clock.wallMs()) {
      throw invalidRequest("expiresAt", "This moment is past.");
    }
    return ctx.keys.create(input, { actor: ctx.principal.keyId, requestId: ctx.requestId });
  });
