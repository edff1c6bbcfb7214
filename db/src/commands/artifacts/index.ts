export * from "./find-artifact.ts";
export * from "./record-download.ts";
