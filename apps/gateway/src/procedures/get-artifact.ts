import { Artifact, Id } from "@keble-scraper/contract";
import { z } from "zod";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** What is known of an artifact, also after its bytes are deleted. */
export const getArtifact = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "artifacts:read" })
  .input(z.strictObject({ id: Id }))
  .output(Artifact)
  .query(({ ctx, input, signal }) =>
    unwrap(ctx.services.artifacts.getArtifact.query({ principal: ctx.principal, id: input.id }, ctx.call(signal))),
  );
