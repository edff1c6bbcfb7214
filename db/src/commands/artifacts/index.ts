export { type Adopted, claimNamespace, type NamespaceClaim } from "./claim-namespace.ts";
export * from "./complete-namespace.ts";
export * from "./find-artifact.ts";
export * from "./object-deletions.ts";
export { type NewPin, putPin } from "./put-pin.ts";
export * from "./record-download.ts";
export * from "./record-finding.ts";
export * from "./review-artifacts.ts";
