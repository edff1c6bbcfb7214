import {
  CreateDownloadAnswer,
  CreateDownloadCall,
  failed,
  formatTime,
  localFailure,
  ok,
} from "@keble-scraper/contract";
import { findArtifact, recordDownload, type StoredObject } from "@keble-scraper/db/commands/artifacts";
import type { Logger } from "@keble-scraper/service";
import { v7 as uuidv7 } from "uuid";
import { type ArtifactsContext, procedure } from "../context.ts";
import { toDisposition } from "../file-name.ts";
import { toServedType } from "../served-type.ts";
import { visibleCaller } from "../visible-caller.ts";

/**
 * A signed, audited link to an artifact's bytes. The URL is made before its audit row and handed out after it: a URL
 * without a row never leaves, a row without a URL tells of a try. GONE: deleted, or the object is missing (a finding).
 */
export const createDownload = procedure
  .input(CreateDownloadCall)
  .output(CreateDownloadAnswer)
  .mutation(async ({ ctx, input }) => {
    const { artifactId, principal, purpose, requestId } = input;
    const callerId = visibleCaller(principal);
    const found = await findArtifact(ctx.database.reads, artifactId, callerId);
    if (found === null) return failed(localFailure("NOT_FOUND"));
    const { artifact, object } = found;
    if (object === null || !(await isInStore(ctx, { artifactId, object }))) return failed(localFailure("GONE"));

    const auditId = uuidv7();
    const expiresAtMs = ctx.clock.wallMs() + ctx.downloadUrlMs;
    const url = ctx.signDownload({
      key: { sha256: object.sha256, generation: object.generation },
      auditId,
      expiresAtMs,
      contentType: toServedType(artifact.contentType),
      disposition: toDisposition(artifact.finalUrl),
    });
    const expiresAt = new Date(expiresAtMs);
    const download = { auditId, artifactId, callerId, kind: principal.kind, purpose, expiresAt };
    const by = { actor: principal.keyId, requestId };
    const isRecorded = await recordDownload(ctx.database.commands, download, by, ctx.auditDays);
    if (!isRecorded) return failed(localFailure("GONE"));
    const { sha256, sizeBytes } = artifact;
    return ok({ url, auditId, expiresAt: formatTime(expiresAt), sha256, sizeBytes });
  });

/** False is a finding for the scrub: a row names an object that is not there, or not in its full length. */
async function isInStore(
  ctx: Pick<ArtifactsContext, "store"> & { readonly logger: Logger },
  { artifactId, object }: { readonly artifactId: string; readonly object: StoredObject },
): Promise<boolean> {
  const head = await ctx.store.head(object);
  if (head?.sizeBytes === object.sizeBytes) return true;
  const { generation, sha256, sizeBytes } = object;
  const finding = { artifactId, sha256, generation, sizeBytes, foundBytes: head?.sizeBytes ?? null };
  ctx.logger.error(finding, head === null ? "scrub.object_missing" : "scrub.object_damaged");
  return false;
}
