import { z } from "zod";
import { Id, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { PRINCIPAL_KINDS, SCOPES } from "./principal.ts";
import { Time, TimeInput } from "./time.ts";

const Scopes = z
  .array(z.enum(SCOPES))
  .max(SCOPES.length)
  .refine((scopes) => new Set(scopes).size === scopes.length, "A scope may be listed once.");

/**
 * The body that makes a key. A SERVICE key needs a `callerId` and at least one scope; an OPERATOR key takes neither.
 * `expiresAt` absent: it does not expire; the gateway refuses one that is past.
 */
export const CreateApiKey = z
  .strictObject({
    name: Name,
    kind: z.enum(PRINCIPAL_KINDS),
    callerId: Name.optional(),
    scopes: Scopes.default([]),
    expiresAt: TimeInput.optional(),
  })
  .superRefine((key, context) => {
    const isService = key.kind === "SERVICE";
    if (isService !== (key.callerId !== undefined)) {
      const message = isService ? "A service key needs a caller." : "An operator key has no caller.";
      context.addIssue({ code: "custom", path: ["callerId"], message });
    }
    if (isService !== key.scopes.length > 0) {
      const message = isService ? "A service key needs a scope." : "An operator key has no scopes.";
      context.addIssue({ code: "custom", path: ["scopes"], message });
    }
  });
export type CreateApiKey = z.infer<typeof CreateApiKey>;

/** A key as it is read. The secret itself is stored nowhere. */
export const ApiKey = z.strictObject({
  id: Id,
  name: Name,
  kind: z.enum(PRINCIPAL_KINDS),
  callerId: Name.nullable(),
  scopes: Scopes,
  createdAt: Time,
  /** Null: it does not expire. */
  expiresAt: Time.nullable(),
  /** Null: it has not been revoked. */
  revokedAt: Time.nullable(),
});
export type ApiKey = z.infer<typeof ApiKey>;

/** The answer to a create: the key and its secret, which is shown this once. */
export const CreatedApiKey = ApiKey.extend({ secret: z.string().max(200) });
export type CreatedApiKey = z.infer<typeof CreatedApiKey>;

/** How the list of keys is paged. */
export const ApiKeyQuery = PageQuery;
export type ApiKeyQuery = PageQuery;

/** A page of keys, newest first, revoked and expired ones included. */
export const ApiKeyPage = pageOf(ApiKey);
export type ApiKeyPage = z.infer<typeof ApiKeyPage>;
