import { Download, Id, localFailure } from "@keble-scraper/contract";
import { z } from "zod";
import { ApiFailure } from "../api-failure.ts";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** An audited, signed way to what a job fetched. CONFLICT when it has no artifact, GONE when the bytes are deleted. */
export const downloadJobContent = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "artifacts:download" })
  .input(z.strictObject({ id: Id }))
  .output(Download)
  .mutation(async ({ ctx, input, signal }) => {
    const { principal, requestId, services } = ctx;
    const job = await unwrap(services.intake.getJob.query({ principal, id: input.id }, ctx.call(signal)));
    const artifactId = job.result?.artifactId ?? null;
    if (artifactId === null) {
      throw new ApiFailure(localFailure("CONFLICT", { message: "The job has no artifact." }));
    }
    return unwrap(
      services.artifacts.createDownload.mutate(
        { principal, artifactId, requestId, purpose: "JOB_CONTENT" },
        ctx.call(signal),
      ),
    );
  });
