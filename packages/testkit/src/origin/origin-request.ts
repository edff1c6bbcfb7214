/** One request as an origin read it. `raw` is the head as it came over the wire, in latin1. */
export type OriginRequest = {
  readonly raw: string;
  readonly method: string;
  /** The request target as sent, query included. */
  readonly target: string;
  /** The target without its query: what behaviours are found by. */
  readonly path: string;
  /** Lower-case names; a repeated name keeps its last value. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body, as long as Content-Length said. */
  readonly body: Buffer;
  /** Counts accepted connections from 1: equal numbers mean the same socket. */
  readonly connection: number;
  /** The name in the TLS client hello; null without TLS or without a name. */
  readonly serverName: string | null;
};

/** Reads a request head; the body is added by the reader, once it has come. */
export function parseRequestHead(raw: string): Omit<OriginRequest, "body" | "connection" | "serverName"> {
  const [requestLine = "", ...lines] = raw.split("\r\n");
  const [method = "", target = ""] = requestLine.split(" ");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return { raw, method, target, path: target.split("?")[0] ?? "", headers };
}
