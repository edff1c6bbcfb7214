import type { Fragment, Tx } from "../../database.ts";
import { toStorableJson } from "../../to-storable-text.ts";
import type { AttemptReport } from "./attempt-report.ts";

/** Reports as the rows that a settle reads, one each; what is null in a report is null in its row. */
export function settleRecords(sql: Tx, reports: readonly AttemptReport[]): Fragment {
  return sql`
    jsonb_to_recordset(${sql.json(toStorableJson(reports.map(toRecord)))}) as x (
      id uuid, token uuid, attempt_id uuid, outcome text, http_status int, failure jsonb, retry_after_ms float8,
      body_bytes bigint, wire_bytes bigint, timings jsonb, result jsonb, next text, wait_ms float8,
      sha256 text, size_bytes bigint, artifact_id uuid, content_type text, final_url text, bytes_status int,
      bytes_kind text, blob_id uuid, generation text, cost_micros bigint, provider_request_id text,
      hold_key text, hold_ms float8, quarantine_reason text, native_code text, quarantine_ms float8)`;
}

function toRecord(report: AttemptReport) {
  const { bytes } = report;
  return {
    id: report.id,
    token: report.token,
    attempt_id: report.attemptId,
    outcome: report.outcome,
    http_status: report.httpStatus,
    failure: report.failure,
    retry_after_ms: report.retryAfterMs,
    body_bytes: report.bodyBytes,
    wire_bytes: report.wireBytes,
    timings: report.timings,
    result: report.result,
    next: report.next,
    wait_ms: report.waitMs,
    sha256: bytes?.sha256 ?? null,
    size_bytes: bytes?.sizeBytes ?? null,
    artifact_id: bytes?.artifactId ?? null,
    content_type: bytes?.contentType ?? null,
    final_url: bytes?.finalUrl ?? null,
    bytes_status: bytes?.httpStatus ?? null,
    bytes_kind: bytes?.kind ?? null,
    blob_id: bytes?.blobId ?? null,
    generation: bytes?.kind === "PUT" ? bytes.generation : null,
    cost_micros: report.costMicros,
    provider_request_id: report.providerRequestId,
    hold_key: report.hold?.hostKey ?? null,
    hold_ms: report.hold?.ms ?? null,
    quarantine_reason: report.quarantine?.reason ?? null,
    native_code: report.quarantine?.nativeCode ?? null,
    // The table refuses one that ends as it begins.
    quarantine_ms: report.quarantine?.forMs == null ? null : Math.max(1_000, report.quarantine.forMs),
  };
}
