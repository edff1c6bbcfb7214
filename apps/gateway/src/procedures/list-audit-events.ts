import { AuditPage, AuditQuery } from "@keble-scraper/contract";
import { apiProcedure } from "../public-trpc.ts";

/** A page of the audit, newest first: everybody's, to operators alone. */
export const listAuditEvents = apiProcedure({ kinds: ["OPERATOR"], scope: null })
  .input(AuditQuery)
  .output(AuditPage)
  .query(({ ctx, input }) => ctx.audit.list(input));
