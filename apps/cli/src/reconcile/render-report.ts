import type { LinkCounts, ReadMismatch, UnusedLink } from "@keble-scraper/db/commands/artifacts";
import type { LogTally } from "./take-logs.ts";

/** What a report is made of: each of these is one line of it. */
export type ReportEntry =
  | { readonly type: "malformed"; readonly place: string; readonly reason: string }
  | { readonly type: "mismatch"; readonly mismatch: ReadMismatch }
  | { readonly type: "unused"; readonly link: UnusedLink }
  | {
      readonly type: "summary";
      readonly log: LogTally;
      /** Null: there is no time to look at: no line in the log has one, and none was asked for. */
      readonly links: (LinkCounts & { readonly since: Date; readonly until: Date }) | null;
      readonly mismatches: number;
    };

const REASONS: Readonly<Record<ReadMismatch["reason"], string>> = {
  NO_AUDIT_ID: "read without an audit id",
  OTHER_KEY: "read with a key that is not this deployment's",
  UNKNOWN_AUDIT_ID: "read under an audit id that no row has",
  NOT_BY_LINK: "its audit id was sent, but not by a signed link",
  OTHER_OBJECT: "its audit row is of another object",
  BEFORE_ROW: "read before its audit row was written",
  AFTER_EXPIRY: "read after its link had ended",
};

/** An entry as one JSON text. */
export function toJsonLine(entry: ReportEntry): string {
  switch (entry.type) {
    case "mismatch":
      return JSON.stringify({ type: entry.type, ...entry.mismatch });
    case "unused":
      return JSON.stringify({ type: entry.type, ...entry.link });
    case "malformed":
    case "summary":
      return JSON.stringify(entry);
  }
}

/** An entry as lines for a person. */
export function toTextLines(entry: ReportEntry): readonly string[] {
  switch (entry.type) {
    case "malformed":
      return [`${entry.place}: can't be read: ${entry.reason}`];
    case "mismatch":
      return [toMismatchLine(entry.mismatch)];
    case "unused": {
      const { actor, auditId, signedAt, subject } = entry.link;
      return [`unused: ${auditId}, signed ${signedAt.toISOString()} for ${actor}, ${subject}`];
    }
    case "summary":
      return toSummaryLines(entry);
  }
}

function toMismatchLine(mismatch: ReadMismatch): string {
  const { at, auditId, generation, place, reason, requestId, sha256 } = mismatch;
  const row = mismatch.subject === null ? "" : `; the row: ${mismatch.subject}, for ${mismatch.actor ?? "nobody"}`;
  const end = reason === "AFTER_EXPIRY" ? `, until ${mismatch.expiresAt ?? "?"}` : "";
  return (
    `MISMATCH ${reason}: ${REASONS[reason]}: ${place}, request ${requestId}, ${at.toISOString()}, ` +
    `${sha256}/${generation}, audit id ${printable(auditId ?? "none")}${row}${end}`
  );
}

function toSummaryLines({ links, log, mismatches }: ReportEntry & { readonly type: "summary" }): readonly string[] {
  const of = (count: number, what: string): string => (count === 0 ? "" : `, ${String(count)} ${what}`);
  return [
    `The log: ${String(log.lines)} lines: ${String(log.reads)} reads of artifacts` +
      of(log.doubled, "of them logged again") +
      of(log.own, "reads by this deployment itself") +
      of(log.elsewhere, "reads of something else") +
      of(log.untimely, "reads outside the time") +
      of(log.others, "other requests") +
      of(log.malformed, "lines that can't be read"),
    links === null
      ? "The audit: no time to look at"
      : `The audit: ${String(links.signed)} links signed from ${links.since.toISOString()} to ${links.until.toISOString()}: ` +
        `${String(links.readOnce)} read once, ${String(links.readOften)} more often, ${String(links.unread)} never; ${String(links.reads)} reads`,
    mismatches === 0 ? "Every read has its audit row" : `${String(mismatches)} reads do not agree with the audit`,
  ];
}

/** What a request said is a stranger's text: only what can't move a cursor is shown, and not much of it. */
function printable(text: string): string {
  return text.replace(/[^ -~]/g, "?").slice(0, 100);
}
