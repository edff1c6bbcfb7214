import { malformed, type ParsedLine, parseRecord, textOf } from "./log-line.ts";
import { parseIsoTime } from "../parse-iso-time.ts";

/** What the download server of a local store logs of bytes that it sent, whole or cut off. */
const READS: ReadonlySet<string> = new Set(["download.served", "download.cut"]);

/** Reads a line of the artifacts service's own log. Only its download server's reads are in it, all of them by link. */
export function parseLocalLine(line: string): ParsedLine {
  const entry = parseRecord(line);
  const at = entry === null ? null : parseIsoTime(textOf(entry, "time") ?? "");
  if (entry === null || at === null) return malformed("not a line of this product's log");
  if (!READS.has(textOf(entry, "msg") ?? "")) return { kind: "OTHER", at };
  const [requestId, sha256, generation] = [
    textOf(entry, "requestId"),
    textOf(entry, "sha256"),
    textOf(entry, "generation"),
  ];
  if (requestId === null || sha256 === null || generation === null) return malformed("no object");
  return {
    kind: "READ",
    read: {
      // Its callers may name a request as they like, and do so twice.
      requestId: `${requestId}@${at.toISOString()}`,
      at,
      bucket: null,
      key: `${sha256}/${generation}`,
      auditId: textOf(entry, "auditId"),
      signedBy: "LINK",
      accessKeyId: null,
    },
  };
}
