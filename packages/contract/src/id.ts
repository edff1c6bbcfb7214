import { z } from "zod";

/** The id of a row. Ours are UUID version 7; any UUID is accepted where one is asked for, and finds nothing. */
export const Id = z.uuid().toLowerCase();
export type Id = z.infer<typeof Id>;

/** A short name chosen by a caller: 1 to 64 of `A-Z a-z 0-9 . _ -`. Labels, sticky keys, callers, endpoint names. */
export const Name = z
  .string()
  .min(1)
  .max(64)
  .regex(/^[A-Za-z0-9._-]*$/, "Only letters, digits, dot, underscore and hyphen are allowed.");
export type Name = z.infer<typeof Name>;

/** The SHA-256 of bytes, 64 lower-case hex digits. */
export const Sha256 = z.string().regex(/^[0-9a-f]{64}$/);
export type Sha256 = z.infer<typeof Sha256>;

/** A count of bytes, 0 or more. */
export const ByteCount = z.int().min(0);
export type ByteCount = z.infer<typeof ByteCount>;

/** The most that one amount of money says: 1,000,000 dollars. */
export const MICROS_MAX = 1_000_000_000_000;

/** Micro-USD (1,000,000 is one dollar), 0 to 1,000,000 dollars. */
export const Micros = z.int().min(0).max(MICROS_MAX);
export type Micros = z.infer<typeof Micros>;

/** A sum of amounts in micro-USD, 0 to 2^53 - 1. */
export const MicrosSum = z.int().min(0);
export type MicrosSum = z.infer<typeof MicrosSum>;

/** A status line's number as a server sent it, 100 to 999. */
export const HttpStatus = z.int().min(100).max(999);
export type HttpStatus = z.infer<typeof HttpStatus>;
