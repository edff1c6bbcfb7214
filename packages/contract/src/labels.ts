import { z } from "zod";
import { Name } from "./id.ts";

/** The most labels a job carries. */
export const LABELS_MAX = 16;

/** A caller's own marks on a job: up to 16, keys and values 1 to 64 of `A-Z a-z 0-9 . _ -`. */
export const Labels = z
  .record(Name, Name)
  .refine((labels) => Object.keys(labels).length <= LABELS_MAX, `At most ${LABELS_MAX} labels are allowed.`)
  .meta({ maxProperties: LABELS_MAX });
export type Labels = z.infer<typeof Labels>;

/** A label as a list's filter: `key:value`. */
export const LabelFilter = z
  .string()
  .max(129)
  .regex(/^[A-Za-z0-9._-]{1,64}:[A-Za-z0-9._-]{1,64}$/, "Write a label as key:value.");
export type LabelFilter = z.infer<typeof LabelFilter>;
