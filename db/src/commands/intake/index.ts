export * from "./cancel-job.ts";
export * from "./submit-jobs.ts";
