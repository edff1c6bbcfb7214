import { z } from "zod";
import { DISABLED_REASONS, EVENT_TYPES } from "./callback-sets.ts";
import { Id, Name } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { UrlText } from "./submit-job.ts";
import { Time } from "./time.ts";

const EventTypes = z
  .array(z.enum(EVENT_TYPES))
  .min(1)
  .max(EVENT_TYPES.length)
  .refine((types) => new Set(types).size === types.length, "A type may be listed once.");
const AttemptBudget = z.int().min(1).max(20);
const TimeoutMs = z.int().min(100).max(60_000);
const MaxConcurrency = z.int().min(1).max(100);
const RatePerSecond = z.number().min(0.01).max(1_000);

/**
 * The body that registers an endpoint. `callerId` is an operator's to give and required of one; a service key registers
 * for its own caller. `events` absent: all types. The other absent fields take the deployment's defaults, fixed here.
 */
export const RegisterCallbackEndpoint = z.strictObject({
  name: Name,
  callerId: Name.optional(),
  url: UrlText,
  events: EventTypes.optional(),
  attemptBudget: AttemptBudget.optional(),
  timeoutMs: TimeoutMs.optional(),
  maxConcurrency: MaxConcurrency.optional(),
  ratePerSecond: RatePerSecond.optional(),
});
export type RegisterCallbackEndpoint = z.infer<typeof RegisterCallbackEndpoint>;

/** The body that changes an endpoint; absent fields stay. At least one is required. */
export const PatchCallbackEndpoint = z
  .strictObject({ url: UrlText.optional(), enabled: z.boolean().optional(), events: EventTypes.optional() })
  .refine((patch) => Object.values(patch).some((value) => value !== undefined), "Nothing to change.");
export type PatchCallbackEndpoint = z.infer<typeof PatchCallbackEndpoint>;

/** An endpoint as it is read. Its secret is never part of it. */
export const CallbackEndpoint = z.strictObject({
  id: Id,
  callerId: Name,
  name: Name,
  url: UrlText,
  enabled: z.boolean(),
  /** Null: it is enabled. */
  disabledReason: z.enum(DISABLED_REASONS).nullable(),
  /** All types, or those it is narrowed to. */
  events: EventTypes,
  attemptBudget: AttemptBudget,
  timeoutMs: TimeoutMs,
  maxConcurrency: MaxConcurrency,
  /** Null: no limit of its own. */
  ratePerSecond: RatePerSecond.nullable(),
  createdAt: Time,
});
export type CallbackEndpoint = z.infer<typeof CallbackEndpoint>;

/** The answer to a register: the endpoint, and its signing secret (`whsec_…`), which is shown this once. */
export const RegisteredCallbackEndpoint = CallbackEndpoint.extend({
  secret: z
    .string()
    .max(200)
    .regex(/^whsec_[A-Za-z0-9+/=]{24,}$/),
});
export type RegisteredCallbackEndpoint = z.infer<typeof RegisteredCallbackEndpoint>;

/** What a list of endpoints is narrowed by. */
export const CallbackEndpointQuery = PageQuery.extend({ name: Name.optional(), callerId: Name.optional() });
export type CallbackEndpointQuery = z.infer<typeof CallbackEndpointQuery>;

/** A page of endpoints, newest first. */
export const CallbackEndpointPage = pageOf(CallbackEndpoint);
export type CallbackEndpointPage = z.infer<typeof CallbackEndpointPage>;
