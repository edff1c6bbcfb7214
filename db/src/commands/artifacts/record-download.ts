import type { DownloadPurpose, PrincipalKind } from "@keble-scraper/contract";
import type { Sql } from "../../database.ts";
import { type Actor, appendAudit } from "../../steps/append-audit.ts";

/** A signed download, about to be handed out. `auditId` is in its signature; `callerId` null: an operator's, any caller's artifact. */
export type NewDownload = {
  readonly auditId: string;
  readonly artifactId: string;
  readonly callerId: string | null;
  readonly kind: PrincipalKind;
  readonly purpose: DownloadPurpose;
  readonly expiresAt: Date;
  /** The object that the URL names, so that a line of the store's access log can be held against the row. */
  readonly sha256: string;
  readonly generation: string;
};

/**
 * Appends the audit row of a download, under the id that its URL carries, while the artifact is AVAILABLE. False: it is
 * not (any more), nothing was written, and the URL must not be handed out. The row lock makes a deletion that comes at the
 * same time wait, so whatever it counts from its own moment on outlives this URL.
 */
export async function recordDownload(
  sql: Sql,
  download: NewDownload,
  by: Actor,
  retentionDays?: number,
): Promise<boolean> {
  const { artifactId, auditId, callerId, expiresAt, generation, kind, purpose, sha256 } = download;
  return sql.begin(async (tx) => {
    const [artifact] = await tx<{ caller_id: string }[]>`
      select caller_id from artifacts
      where id = ${artifactId} and state = 'AVAILABLE' and (${callerId}::text is null or caller_id = ${callerId})
      for key share`;
    if (artifact === undefined) return false;
    await appendAudit(
      tx,
      {
        id: auditId,
        action: "artifact.download-signed",
        by,
        callerId: artifact.caller_id,
        subject: `artifact:${artifactId}`,
        details: { kind, purpose, expiresAt: expiresAt.toISOString(), sha256, generation },
      },
      retentionDays,
    );
    return true;
  });
}
