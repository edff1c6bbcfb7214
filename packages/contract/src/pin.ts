import { z } from "zod";
import { Id } from "./id.ts";
import { PageQuery, pageOf } from "./page.ts";
import { Time, TimeInput } from "./time.ts";

/** Who keeps an artifact, a name of its caller's choosing: 1 to 128 of `A-Z a-z 0-9 . _ : -`. */
export const PinOwner = z.string().regex(/^[A-Za-z0-9._:-]{1,128}$/, "1 to 128 of A-Z a-z 0-9 . _ : -");
export type PinOwner = z.infer<typeof PinOwner>;

/** A policy's number, 1 to 2^53 - 1: a newer one replaces, an older one is ignored. */
export const RetentionRevision = z.int().min(1);

/** The body that pins. `expiresAt` null keeps the bytes indefinitely; a time in the past releases them. */
export const PutPin = z.strictObject({ retentionRevision: RetentionRevision, expiresAt: TimeInput.nullable() });
export type PutPin = z.infer<typeof PutPin>;

/** A pin as it stands. One whose `expiresAt` has passed holds nothing. */
export const Pin = z.strictObject({
  artifactId: Id,
  owner: PinOwner,
  retentionRevision: RetentionRevision,
  expiresAt: Time.nullable(),
  createdAt: Time,
  updatedAt: Time,
});
export type Pin = z.infer<typeof Pin>;

/** The pin as it stands now. `applied` false: the revision was stale or had been applied before, and nothing changed. */
export const PutPinResult = z.strictObject({ pin: Pin, applied: z.boolean() });
export type PutPinResult = z.infer<typeof PutPinResult>;

/** How the list of an artifact's pins is paged. */
export const PinQuery = PageQuery;
export type PinQuery = PageQuery;

/** A page of pins, by owner. */
export const PinPage = pageOf(Pin);
export type PinPage = z.infer<typeof PinPage>;
