export * from "./bootstrap-operator-key.ts";
export * from "./create-api-key.ts";
export { hashApiKey, type NewApiKey } from "./insert-api-key.ts";
export * from "./revoke-api-key.ts";
