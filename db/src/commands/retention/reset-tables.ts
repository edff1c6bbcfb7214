/**
 * What a reset empties, and nothing else: rows first that refer to others. Attempts are not named by a delete of their own:
 * a trigger lets them go with their jobs alone.
 */
export const RESET_TABLES = [
  "callback_tries",
  "callback_deliveries",
  "callback_events",
  "jobs",
  "attempts",
  "cache_flights",
  "cache_entries",
  "artifact_pins",
  "artifacts",
  "object_deletions",
  "blobs",
  "store_findings",
  "budgets",
  "host_holds",
  "route_quarantines",
  "admission_clocks",
] as const;
export type ResetTable = (typeof RESET_TABLES)[number];

/**
 * What a reset leaves as it is: its evidence (audit, runs), who may call and be called (keys, endpoints and their secrets),
 * whose the store is, and two rows that only say where maintenance is.
 */
export const KEPT_TABLES = [
  "api_keys",
  "audit_events",
  "callback_endpoints",
  "callback_secrets",
  "purge_turn",
  "reset_runs",
  "store_namespace",
  "store_scrub",
] as const;
