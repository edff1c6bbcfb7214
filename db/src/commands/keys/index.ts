export * from "./create-api-key.ts";
export * from "./revoke-api-key.ts";
