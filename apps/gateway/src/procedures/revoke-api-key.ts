import { ApiKey, Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** Revokes a key for good; a revoked one stays as it was. */
export const revokeApiKey = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(z.strictObject({ id: Id }))
  .output(ApiKey)
  .mutation(({ ctx, input }) =>
    unwrap(ctx.keys.revoke(input.id, { actor: ctx.principal.keyId, requestId: ctx.requestId })),
  );
