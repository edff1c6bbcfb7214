import type { Principal, Result } from "@keble-scraper/contract";
import type { Clock, Logger } from "@keble-scraper/service";
import type { AuditLog } from "./audit/audit-log.ts";
import type { KeyStore } from "./keys/key-store.ts";
import type { Services } from "./services.ts";

/** What outlives a request. */
export type GatewayParts = {
  readonly services: Services;
  readonly keys: KeyStore;
  readonly audit: AuditLog;
  readonly clock: Clock;
  readonly logger: Logger;
};

/** What a public procedure may use. `caller` is who calls, or why nobody does. */
export type ApiContext = GatewayParts & {
  readonly requestId: string;
  readonly caller: Result<Principal>;
};
