import { StoreUnavailable } from "@keble-scraper/artifact-store";
import {
  CreateDownloadAnswer,
  CreateDownloadCall,
  failed,
  formatTime,
  localFailure,
  ok,
} from "@keble-scraper/contract";
import { findArtifact, recordDownload, recordFinding, type StoredObject } from "@keble-scraper/db/commands/artifacts";
import type { Logger } from "@keble-scraper/service";
import { v7 as uuidv7 } from "uuid";
import { type ArtifactsContext, procedure } from "../context.ts";
import { toDisposition } from "../file-name.ts";
import { toServedType } from "../served-type.ts";
import { visibleCaller } from "../visible-caller.ts";

/** A link is made of what is there just now, or with a reason why not. */
type Presence = "WHOLE" | "MISSING" | "DAMAGED" | "STORE_AWAY";

/**
 * A signed, audited link to an artifact's bytes. The URL is made before its audit row and handed out after it: a URL
 * without a row never leaves, a row without a URL tells of a try. GONE: deleted, or the object is missing (a finding).
 * DEPENDENCY_UNAVAILABLE: the store does not answer.
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
    if (object === null) return failed(localFailure("GONE"));
    const presence = await lookUp(ctx, { artifactId, object });
    if (presence === "STORE_AWAY") return failed(localFailure("DEPENDENCY_UNAVAILABLE"));
    if (presence !== "WHOLE") return failed(localFailure("GONE"));
    // The caller's time went by while the store was slow: a row would tell of a link that nobody got.
    if (ctx.signal.aborted) {
      ctx.logger.info({ artifactId, requestId }, "download.given_up");
      return failed(localFailure("DEPENDENCY_UNAVAILABLE"));
    }

    const auditId = uuidv7();
    const { generation, sha256 } = object;
    // A link of S3 ends at a whole second, so that is when all of them end.
    const expiresAtMs = Math.floor((ctx.clock.wallMs() + ctx.downloadUrlMs) / 1000) * 1000;
    const url = await ctx.signDownload({
      key: { sha256, generation },
      auditId,
      expiresAtMs,
      contentType: toServedType(artifact.contentType),
      disposition: toDisposition(artifact.finalUrl),
    });
    const expiresAt = new Date(expiresAtMs);
    const download = { auditId, artifactId, callerId, kind: principal.kind, purpose, expiresAt, sha256, generation };
    const by = { actor: principal.keyId, requestId };
    const isRecorded = await recordDownload(ctx.database.commands, download, by, ctx.auditDays);
    if (!isRecorded) return failed(localFailure("GONE"));
    return ok({ url, auditId, expiresAt: formatTime(expiresAt), sha256, sizeBytes: artifact.sizeBytes });
  });

/** Asks the store. MISSING and DAMAGED (not in its full length) are findings: a row names what is not there. */
async function lookUp(
  ctx: Pick<ArtifactsContext, "auditDays" | "database" | "store"> & { readonly logger: Logger },
  { artifactId, object }: { readonly artifactId: string; readonly object: StoredObject },
): Promise<Presence> {
  const { generation, sha256, sizeBytes } = object;
  try {
    const head = await ctx.store.head(object);
    if (head?.sizeBytes === sizeBytes) return "WHOLE";
    const kind = head === null ? "MISSING" : "DAMAGED";
    const finding = { artifactId, sha256, generation, sizeBytes, foundBytes: head?.sizeBytes ?? null };
    ctx.logger.error(finding, head === null ? "scrub.object_missing" : "scrub.object_damaged");
    await recordFinding(ctx.database.commands, { kind, sha256, generation, retentionDays: ctx.auditDays });
    return kind;
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error;
    ctx.logger.warn({ artifactId, code: error.code }, "store.unavailable");
    return "STORE_AWAY";
  }
}
