/** What a page may need beside its own document: scripts, images, fonts. The median page of the web is 2 to 3 MB. */
const SUB_RESOURCE_BYTES = 16 * 1024 * 1024;

/** However large a document may be, one job moves no more than this. */
const BUDGET_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Raw bytes, both directions and all connections together, that one page may move through the forward proxy; and the decoded
 * bytes that its responses may come to. Four times the largest artifact and 16 MiB, at most 256 MiB.
 */
export function renderBudgetBytes(maxBodyBytes: number): number {
  return Math.min(4 * maxBodyBytes + SUB_RESOURCE_BYTES, BUDGET_BYTES_MAX);
}

/** Connections that one page may have open at once. Chromium itself opens at most 32 by one proxy, WebSockets aside. */
export const JOB_CONNECTIONS_MAX = 64;

/** Connections and forwarded requests of one page in all. */
export const JOB_REQUESTS_MAX = 2_000;
