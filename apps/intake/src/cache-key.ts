import { createHash } from "node:crypto";
import type { SubmitJob } from "@keble-scraper/contract";
import canonicalize from "canonicalize";

/** A caller's own condition asks the target about the caller's own copy: no stored answer answers that. */
const CONDITIONS = ["if-none-match", "if-modified-since"] as const;

/**
 * SHA-256, hex, of all by which two jobs' answers may differ, the caller aside: URL as it will be fetched, method, headers,
 * transport, capture, accept, egress, robots, routes in their order. Freshness, limits, content types and labels are not in
 * it: they say which stored answer will do. Null: the job takes and leaves nothing in the cache.
 */
export function cacheKey(job: SubmitJob, as: { readonly url: string; readonly capture: string | null }): string | null {
  const { method, headers } = job.target;
  if (job.freshness === "NO_CACHE" || CONDITIONS.some((name) => headers[name] !== undefined)) return null;
  const { transport, accept, robots, routes, egress = null } = job;
  const parts = { url: as.url, capture: as.capture, method, headers, transport, accept, robots, routes, egress };
  return createHash("sha256")
    .update(canonicalize(parts) ?? "")
    .digest("hex");
}
