export * from "./claim-jobs.ts";
export * from "./expire-jobs.ts";
export * from "./recover-leases.ts";
export * from "./release-jobs.ts";
export * from "./renew-leases.ts";
export * from "./settle-jobs.ts";
