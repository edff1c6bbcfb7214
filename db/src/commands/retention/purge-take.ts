/** What a batch may take. */
export type PurgeTake = {
  /** Rows; 1 at the least. */
  readonly limit: number;
  /** Only rows that expired then or later: where the batch before ended. Null: all. */
  readonly since: Date | null;
  /** How long the audit, and what money was spent on a day, are kept. */
  readonly auditDays: number;
};

/** What a batch did. */
export type PurgeTaken = {
  /** Rows that are gone. */
  readonly rows: number;
  /** Rows that it looked at: as many as its limit means that there may be more. */
  readonly taken: number;
  /** When the last row that it looked at had expired; null: it saw none. */
  readonly last: Date | null;
};

/** `since` as SQL takes it: text, because the beginning is not a date of JavaScript's. */
export function sinceText({ since }: PurgeTake): string {
  return since === null ? "-infinity" : since.toISOString();
}
