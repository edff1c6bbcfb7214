import { Download, Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** An audited, signed way to an artifact's bytes. GONE when they are deleted. */
export const createDownload = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "artifacts:download" })
  .input(z.strictObject({ id: Id }))
  .output(Download)
  .mutation(({ ctx, input, signal }) => {
    const { principal, requestId } = ctx;
    const call = { principal, artifactId: input.id, requestId, purpose: "ARTIFACT_DOWNLOAD" } as const;
    return unwrap(ctx.services.artifacts.createDownload.mutate(call, ctx.call(signal)));
  });
