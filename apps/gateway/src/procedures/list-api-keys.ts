import { ApiKeyPage, ApiKeyQuery } from "@keble-scraper/contract";
import { apiProcedure } from "../public-trpc.ts";

/** A page of keys, newest first, revoked and expired ones included. */
export const listApiKeys = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(ApiKeyQuery)
  .output(ApiKeyPage)
  .query(({ ctx, input }) => ctx.keys.list(input));
