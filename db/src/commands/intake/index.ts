export * from "./cancel-job.ts";
export * from "./delete-job.ts";
export * from "./submit-jobs.ts";
