import { z } from "zod";
import {
  ACTIONS,
  type Action,
  DISPOSITIONS,
  type Disposition,
  FAILURES,
  LOCAL_CODES,
  LOCAL_ORIGINS,
  type LocalCode,
  type LocalOrigin,
  UPSTREAM_CODES,
  UPSTREAM_ORIGINS,
  type UpstreamCode,
  type UpstreamOrigin,
} from "./failure-table.ts";

const text = z.string().max(500);
const time = z.iso.datetime({ precision: 3 });

/** A failure that is ours: the request, its policy, our capacity or our own parts. `retryAt` is RFC 3339 UTC. */
export const LocalFailure = z.strictObject({
  kind: z.literal("LOCAL"),
  origin: z.enum(LOCAL_ORIGINS),
  code: z.enum(LOCAL_CODES),
  disposition: z.enum(DISPOSITIONS),
  message: text,
  retryAt: time.optional(),
  capacity: text.optional(),
});
export type LocalFailure = z.infer<typeof LocalFailure>;

/** A failure that the target or a supplier caused. `httpStatus` is the status they answered with, 100 to 999. */
export const UpstreamFailure = z.strictObject({
  kind: z.literal("UPSTREAM"),
  origin: z.enum(UPSTREAM_ORIGINS),
  code: z.enum(UPSTREAM_CODES),
  disposition: z.enum(DISPOSITIONS),
  action: z.enum(ACTIONS),
  message: text,
  httpStatus: z.int().min(100).max(999).optional(),
  nativeCode: z.string().max(100).optional(),
  nativeRequestId: z.string().max(200).optional(),
  retryAt: time.optional(),
  capacity: text.optional(),
});
export type UpstreamFailure = z.infer<typeof UpstreamFailure>;

/** The one discriminated family that attempts, jobs, deliveries and HTTP errors record. */
export const Failure = z.discriminatedUnion("kind", [LocalFailure, UpstreamFailure]);
export type Failure = z.infer<typeof Failure>;

/** The outcome of anything a caller can act on; faults (bugs, broken infrastructure) are thrown instead. */
export type Result<T, F = Failure> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly failure: F };

type LocalOverrides = {
  origin?: LocalOrigin;
  disposition?: Disposition;
  message?: string;
  retryAt?: string;
  capacity?: string;
};
type UpstreamOverrides = {
  origin?: UpstreamOrigin;
  disposition?: Disposition;
  action?: Action;
  message?: string;
  httpStatus?: number;
  nativeCode?: string;
  nativeRequestId?: string;
  retryAt?: string;
  capacity?: string;
};

/** A LOCAL failure with the table's defaults; `overrides` come from the closed sets. */
export function localFailure(code: LocalCode, overrides: LocalOverrides = {}): LocalFailure {
  const { origin, disposition, text: message } = FAILURES.LOCAL[code];
  return { kind: "LOCAL", origin, code, disposition, message, ...overrides };
}

/** An UPSTREAM failure with the table's defaults; `overrides` come from the closed sets. */
export function upstreamFailure(code: UpstreamCode, overrides: UpstreamOverrides = {}): UpstreamFailure {
  const { origin, disposition, action, text: message } = FAILURES.UPSTREAM[code];
  return { kind: "UPSTREAM", origin, code, disposition, action, message, ...overrides };
}

/** A successful result. */
export function ok<T>(value: T): { readonly ok: true; readonly value: T } {
  return { ok: true, value };
}

/** A failed result. */
export function failed<F>(failure: F): { readonly ok: false; readonly failure: F } {
  return { ok: false, failure };
}
