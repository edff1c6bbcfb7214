export { type PurgeAnswer, type PurgeBatch, purgeBatch } from "./purge-batch.ts";
