import { router } from "./context.ts";
import { createDownload } from "./procedures/create-download.ts";
import { getArtifact } from "./procedures/get-artifact.ts";
import { listPins } from "./procedures/list-pins.ts";
import { putPin } from "./procedures/put-pin.ts";

/** What other services may ask of artifacts. */
export const artifactsRouter = router({ getArtifact, createDownload, putPin, listPins });

/** The router's type, for clients. */
export type ArtifactsRouter = typeof artifactsRouter;
