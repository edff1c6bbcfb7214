export { type PurgeAnswer, type PurgeBatch, purgeBatch } from "./purge-batch.ts";
export * from "./begin-reset.ts";
export * from "./finish-reset.ts";
export * from "./plan-reset.ts";
export * from "./reset-objects.ts";
export * from "./reset-rows.ts";
export {
  findResetRun,
  findRunningCampaign,
  type ResetEvidence,
  type ResetProgress,
  type ResetRun,
} from "./reset-run.ts";
export * from "./reset-tables.ts";
