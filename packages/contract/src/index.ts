export * from "./failure-table.ts";
export * from "./failure.ts";
