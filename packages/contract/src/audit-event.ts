import { z } from "zod";
import { Id, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Time, TimeInput } from "./time.ts";

const Action = z.string().regex(/^[a-z][a-z0-9.-]{0,63}$/, "such as api-key.created");
/** No row holds a NUL, and the database takes none in a question. */
const isStorable = (text: string) => !text.includes("\0");
const NO_NUL = "without NUL";
const Subject = z.string().min(1).max(300).refine(isStorable, NO_NUL);
const Actor = z.string().min(1).max(128).refine(isStorable, NO_NUL);

/** One audited action: who did what to what, and for which request. */
export const AuditEvent = z.strictObject({
  id: Id,
  occurredAt: Time,
  action: Action,
  /** An API key's id, or `system:<part>`. */
  actor: Actor,
  /** The row it was done to, such as `artifact:<id>`. */
  subject: Subject,
  /** Whose row that is; null: nobody's. */
  callerId: Name.nullable(),
  requestId: z.string().max(128).nullable(),
  details: z.record(z.string().max(64), z.union([z.string().max(4_096), z.number(), z.boolean(), z.null()])),
});
export type AuditEvent = z.infer<typeof AuditEvent>;

/** What the audit is narrowed by, all of it together. Newest first. Both times are exclusive. */
export const AuditQuery = PageQuery.extend({
  action: Action.optional(),
  actor: Actor.optional(),
  subject: Subject.optional(),
  callerId: Name.optional(),
  occurredAfter: TimeInput.optional(),
  occurredBefore: TimeInput.optional(),
});
export type AuditQuery = z.infer<typeof AuditQuery>;

/** A page of the audit, newest first. */
export const AuditPage = pageOf(AuditEvent);
export type AuditPage = z.infer<typeof AuditPage>;
