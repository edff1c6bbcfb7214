import { z } from "zod";
import { Micros, Name } from "./id.ts";
import {
  ACCEPT,
  CAPTURES,
  DEADLINES,
  DEADLINE_SECONDS,
  FRESHNESS,
  METHODS,
  ROBOTS,
  ROUTES,
  type Route,
  TRANSPORTS,
  type Transport,
} from "./job-sets.ts";
import { Labels } from "./labels.ts";
import { RequestHeaders } from "./request-headers.ts";

/** The most jobs one batch holds. */
export const BATCH_JOBS_MAX = 1_000;
/** The longest a submit or a read waits for a job to end. */
export const WAIT_SECONDS_MAX = 60;
/** The largest body a job takes when it does not say, decoded: 10 MiB. */
export const MAX_BODY_BYTES_DEFAULT = 10_485_760;

/**
 * A URL as sent. Only its being text of at most 100,000 characters is checked here; what may be fetched is the address
 * policy's to say (TARGET_FORBIDDEN), its length included.
 */
export const UrlText = z.string().max(100_000);
export type UrlText = z.infer<typeof UrlText>;

/** A caller's key against submitting twice: 1 to 255 visible ASCII characters. */
export const IdempotencyKey = z
  .string()
  .min(1)
  .max(255)
  .regex(/^[\x21-\x7e]*$/, "Only visible ASCII characters are allowed.");
export type IdempotencyKey = z.infer<typeof IdempotencyKey>;

/** How long to wait for a job to end, 1 to 60 s. Absent: not at all. */
export const WaitSeconds = z.int().min(1).max(WAIT_SECONDS_MAX);
export type WaitSeconds = z.infer<typeof WaitSeconds>;

const MediaType = z
  .string()
  .max(255)
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}\/(?:\*|[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126})$/,
    "Write a media type as type/subtype or type/*.",
  )
  .toLowerCase();

/** A country as two lower-case letters (ISO 3166-1). */
export const Country = z.string().regex(/^[a-z]{2}$/, "Write a country as two lower-case letters (ISO 3166-1).");
export type Country = z.infer<typeof Country>;

/** Where a paid route should come out: in a country, and by the same exit for all jobs of one sticky key. Absent: anywhere. */
export const EgressWishes = z.strictObject({ country: Country.optional(), stickyKey: Name.optional() });
export type EgressWishes = z.infer<typeof EgressWishes>;

const JobLimits = z
  .strictObject({
    attemptBudget: z.int().min(1).max(10).default(3),
    deadline: z.enum(DEADLINES).optional(),
    deadlineSeconds: z.int().min(5).max(86_400).optional(),
    maxBodyBytes: z.int().min(1).default(MAX_BODY_BYTES_DEFAULT),
    costCapMicros: Micros.default(0),
  })
  .superRefine((limits, context) => {
    if (limits.deadline !== undefined && limits.deadlineSeconds !== undefined) {
      context.addIssue({
        code: "custom",
        path: ["deadlineSeconds"],
        message: "Give `deadline` or `deadlineSeconds`, not both.",
      });
    }
  })
  .transform(({ deadline = "FIVE_MINUTES", deadlineSeconds, ...limits }) => ({
    ...limits,
    deadlineSeconds: deadlineSeconds ?? DEADLINE_SECONDS[deadline],
  }));

/**
 * The body of a submit. Parsed, it has every default filled in, header names in lower case and the deadline in seconds.
 * `routes` absent means the transport's free route: DIRECT, or LOCAL_RENDER for RENDER. Whether a route serves the
 * transport, is configured or is paid for, and whether `capture` or `egress` can be had, is known only to a
 * deployment: intake answers 422. A route that is a supplier's service sends only those of `target.headers` that its protocol
 * has a place for; the Unlocker's has none.
 */
export const SubmitJob = z
  .strictObject({
    target: z.strictObject({
      url: UrlText,
      method: z.enum(METHODS).default("GET"),
      headers: RequestHeaders.default({}),
    }),
    transport: z.enum(TRANSPORTS).default("HTTP"),
    routes: z
      .array(z.enum(ROUTES))
      .min(1)
      .max(ROUTES.length)
      .refine((routes) => new Set(routes).size === routes.length, "A route may be listed once.")
      .optional(),
    capture: z.enum(CAPTURES).optional(),
    freshness: z.enum(FRESHNESS).default("NO_CACHE"),
    accept: z.enum(ACCEPT).default("SUCCESS_ONLY"),
    contentTypes: z.array(MediaType).min(1).max(16).nullable().default(null),
    robots: z.enum(ROBOTS).default("RESPECT"),
    limits: JobLimits.prefault({}),
    egress: EgressWishes.optional(),
    callback: z.strictObject({ endpoint: Name }).optional(),
    labels: Labels.default({}),
  })
  .transform((job) => ({ ...job, routes: job.routes ?? freeRoutes(job.transport) }));
export type SubmitJob = z.infer<typeof SubmitJob>;
/** The same as a caller writes it, before defaults. */
export type SubmitJobInput = z.input<typeof SubmitJob>;

/** The body of a check: a submit's. Nothing is created. */
export const CheckJob = SubmitJob;
export type CheckJob = SubmitJob;

/** The body of a batch, 1 to 1,000 items. Each item is parsed alone, so that a bad one harms no other. */
export const SubmitBatch = z.strictObject({ jobs: z.array(z.unknown()).min(1).max(BATCH_JOBS_MAX) });
export type SubmitBatch = z.infer<typeof SubmitBatch>;
/** One item of a batch as a caller writes it. `idempotencyKey` is no part of the body that is compared. */
export type BatchJobInput = SubmitJobInput & { idempotencyKey?: string | undefined };

function freeRoutes(transport: Transport): Route[] {
  return transport === "HTTP" ? ["DIRECT"] : ["LOCAL_RENDER"];
}
