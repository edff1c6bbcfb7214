import { Id, PinPage, PinQuery } from "@keble-scraper/contract";
import { apiProcedure, unwrap } from "../public-trpc.ts";

/** A page of an artifact's pins, by owner, released ones too. */
export const listPins = apiProcedure({ kinds: ["SERVICE", "OPERATOR"], scope: "artifacts:read" })
  .input(PinQuery.extend({ id: Id }))
  .output(PinPage)
  .query(({ ctx, input: { id, ...query }, signal }) =>
    unwrap(
      ctx.services.artifacts.listPins.query({ principal: ctx.principal, artifactId: id, query }, ctx.call(signal)),
    ),
  );
