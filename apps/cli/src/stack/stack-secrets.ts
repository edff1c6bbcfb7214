import { randomBytes } from "node:crypto";
import { readStateFile, type StateDirectory, writeStateFile } from "./state-directory.ts";

/** What a local stack makes up once and keeps (mode 0600). */
export type StackSecrets = {
  readonly serviceToken: string;
  /** 32 bytes, base64. */
  readonly secretKey: string;
  readonly ownerPassword: string;
  readonly appPassword: string;
};

/** The kept secrets; those that are missing are made and written down before anybody uses them. */
export function loadStackSecrets(state: StateDirectory): StackSecrets {
  const kept = readStateFile(state.secrets) ?? {};
  const secrets: StackSecrets = {
    serviceToken: kept["serviceToken"] ?? randomBytes(32).toString("base64url"),
    secretKey: kept["secretKey"] ?? randomBytes(32).toString("base64"),
    ownerPassword: kept["ownerPassword"] ?? randomBytes(24).toString("base64url"),
    appPassword: kept["appPassword"] ?? randomBytes(24).toString("base64url"),
  };
  writeStateFile(state.secrets, secrets);
  return secrets;
}
