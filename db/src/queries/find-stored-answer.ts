import type { Tx } from "../database.ts";
import type { CachedAnswer } from "./list-cached-answers.ts";
import type { StoredResult } from "./to-job.ts";

/** All of a stored answer: what a revalidation compares with, and what the job gets when the target vouches for it again. */
export type StoredAnswer = {
  readonly result: StoredResult;
  /** Its bytes; null: the answer has none. */
  readonly bytes: {
    readonly blobId: string;
    readonly sha256: string;
    readonly sizeBytes: number;
    readonly contentType: string | null;
    readonly finalUrl: string;
    readonly httpStatus: number;
  } | null;
};

/** The whole of an answer that was listed; null: it went, was replaced, or its bytes are not there any more. */
export async function findStoredAnswer(
  sql: Tx,
  { key, callerId, validatedAtMs }: Pick<CachedAnswer, "key" | "callerId" | "validatedAtMs">,
): Promise<StoredAnswer | null> {
  const [row] = await sql<StoredRow[]>`
    select e.result, e.artifact_id, a.blob_id, encode(a.sha256, 'hex') as sha256, a.size_bytes::float8 as size_bytes, a.content_type,
           a.final_url, a.http_status
    from cache_entries e left join artifacts a on a.id = e.artifact_id and a.state = 'AVAILABLE'
    where e.key = decode(${key}, 'hex') and e.caller_id = ${callerId} and jsonb_typeof(e.result) = 'object'
      and (extract(epoch from e.validated_at) * 1000)::float8 = ${validatedAtMs}`;
  if (row === undefined) return null;
  if (row.artifact_id === null) return { result: row.result, bytes: null };
  if (row.blob_id === null || row.sha256 === null) return null;
  const { blob_id: blobId, sha256, size_bytes: sizeBytes, content_type: contentType } = row;
  const bytes = { blobId, sha256, sizeBytes, contentType, finalUrl: row.final_url, httpStatus: row.http_status };
  return { result: row.result, bytes };
}

type StoredRow = {
  result: StoredResult;
  artifact_id: string | null;
  blob_id: string | null;
  sha256: string | null;
  size_bytes: number;
  content_type: string | null;
  final_url: string;
  http_status: number;
};
