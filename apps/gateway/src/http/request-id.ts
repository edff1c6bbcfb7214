import { randomUUID } from "node:crypto";

const WELL_FORMED = /^[A-Za-z0-9._-]{1,128}$/u;

/** The caller's request id when it is 1 to 128 of `A-Z a-z 0-9 . _ -`, else one of our own. */
export function takeRequestId(header: string | undefined): string {
  return header !== undefined && WELL_FORMED.test(header) ? header : randomUUID();
}
