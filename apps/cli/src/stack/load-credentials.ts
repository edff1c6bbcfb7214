import { CreatedApiKey, SCOPES } from "@keble-scraper/contract";
import { createOperatorKey } from "../commands/keys.ts";
import { withDatabase } from "../with-database.ts";
import { expectStatus, type GatewayClient } from "./gateway-client.ts";
import { readStateFile, type StateDirectory, writeStateFile } from "./state-directory.ts";

/** What a caller of the local stack needs; the content of `credentials.json`. */
export type Credentials = { readonly gatewayUrl: string; readonly serviceKey: string; readonly operatorKey: string };

/** The caller that the local service key belongs to. */
export const LOCAL_CALLER = "local";

/**
 * The keys of the last start when this database still knows them, else new ones. The service key has every scope but
 * `callbacks:manage`. The file is written before they are returned, mode 0600.
 */
export async function loadCredentials(options: {
  readonly state: StateDirectory;
  readonly gateway: GatewayClient;
  readonly gatewayUrl: string;
  /** The app role's. */
  readonly databaseUrl: string;
  /** How long the audit row of an operator key that is made here is kept. */
  readonly auditDays: number;
}): Promise<Credentials> {
  const { state, gateway, gatewayUrl } = options;
  const kept = readStateFile(state.credentials) ?? {};
  const operatorKey =
    (await keepIfAccepted(gateway, kept["operatorKey"], "/v1/api-keys?limit=1")) ?? (await makeOperatorKey(options));
  const serviceKey =
    (await keepIfAccepted(gateway, kept["serviceKey"], "/v1/jobs?limit=1")) ??
    (await makeServiceKey(gateway, operatorKey));
  const credentials: Credentials = { gatewayUrl, serviceKey, operatorKey };
  writeStateFile(state.credentials, credentials);
  return credentials;
}

async function keepIfAccepted(gateway: GatewayClient, key: string | undefined, path: string): Promise<string | null> {
  if (key === undefined) return null;
  const answer = await gateway.call(key, "GET", path);
  if (answer.status === 401 || answer.status === 403) return null;
  expectStatus(answer, [200], `GET ${path}`);
  return key;
}

async function makeOperatorKey(options: { readonly databaseUrl: string; readonly auditDays: number }): Promise<string> {
  const { secret } = await withDatabase(options.databaseUrl, (database) =>
    createOperatorKey(database, "local-operator", options.auditDays),
  );
  return secret;
}

async function makeServiceKey(gateway: GatewayClient, operatorKey: string): Promise<string> {
  const scopes = SCOPES.filter((scope) => scope !== "callbacks:manage");
  const body = { name: "local-service", kind: "SERVICE", callerId: LOCAL_CALLER, scopes };
  const answer = await gateway.call(operatorKey, "POST", "/v1/api-keys", { body });
  return CreatedApiKey.parse(expectStatus(answer, [201], "The service key")).secret;
}
