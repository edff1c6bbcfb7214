import { CreateApiKey, CreatedApiKey } from "@keble-scraper/contract";
import { apiProcedure } from "../public-trpc.ts";

/** Makes a key. The answer holds its secret, this once. */
export const createApiKey = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(CreateApiKey)
  .output(CreatedApiKey)
  .mutation(({ ctx, input }) => ctx.keys.create(input, { actor: ctx.principal.keyId, requestId: ctx.requestId }));
