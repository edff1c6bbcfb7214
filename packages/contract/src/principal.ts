import { z } from "zod";
import { Id, Name } from "./id.ts";

/** Who a key speaks for. An OPERATOR reads and cancels all and submits nothing; a SERVICE sees its caller's rows only. */
export const PRINCIPAL_KINDS = ["SERVICE", "OPERATOR"] as const;
export type PrincipalKind = (typeof PRINCIPAL_KINDS)[number];

/** What a service key may do. An operator key needs none of them. */
export const SCOPES = [
  "jobs:read",
  "jobs:write",
  "artifacts:read",
  "artifacts:download",
  "artifacts:pin",
  "callbacks:manage",
] as const;
export type Scope = (typeof SCOPES)[number];

/** The one who calls, as every service is told. `callerId` is a service's tenant, and null for an operator. */
export const Principal = z.strictObject({
  keyId: Id,
  kind: z.enum(PRINCIPAL_KINDS),
  callerId: Name.nullable(),
  scopes: z.array(z.enum(SCOPES)).max(SCOPES.length),
});
export type Principal = z.infer<typeof Principal>;
