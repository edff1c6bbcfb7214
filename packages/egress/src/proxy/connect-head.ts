/** A proxy's answer to CONNECT. `rest`: bytes that came glued behind the head; they belong to the tunnel, or to a refusal's body. */
export type ConnectHead = {
  readonly httpStatus: number;
  readonly reason: string;
  /** Every value of a header, in order, one character per byte. */
  values(name: string): readonly string[];
  /** The values joined by ", "; null when the header is absent. */
  value(name: string): string | null;
  readonly rest: Buffer;
};

/** TOO_LARGE: no end within 8 KiB. MALFORMED: not an HTTP/1 response head. Both are final. */
export type ConnectHeadRead =
  | { readonly kind: "MORE" }
  | { readonly kind: "HEAD"; readonly head: ConnectHead }
  | { readonly kind: "TOO_LARGE" }
  | { readonly kind: "MALFORMED" };

/** A proxy says little before a tunnel; interim heads count too. */
export const CONNECT_HEAD_BYTES_MAX = 8 * 1024;

const HEAD_END = "\r\n\r\n";
const HEAD_BEGIN = Buffer.from("HTTP/1.");
const STATUS_LINE = /^HTTP\/1\.[01] ([1-9]\d\d)(?: (.*))?$/;
// RFC 9110 section 5.6.2: a token, then a colon right behind it.
const HEADER_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+):[ \t]*(.*?)[ \t]*$/;
// oxlint-disable-next-line no-control-regex -- these are what no head may hold
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/;

/**
 * Reads the head of an answer to CONNECT from chunks, as they come. Strict, since whoever reads a head otherwise than the
 * proxy wrote it puts the tunnel's first byte elsewhere.
 */
export function createConnectHeadReader(): (chunk: Buffer) => ConnectHeadRead {
  let buffered: Buffer = Buffer.alloc(0);
  let interimBytes = 0;

  const read = (): ConnectHeadRead => {
    const begin = buffered.subarray(0, HEAD_BEGIN.length);
    if (!begin.equals(HEAD_BEGIN.subarray(0, begin.length))) return { kind: "MALFORMED" };
    const end = buffered.indexOf(HEAD_END);
    if (interimBytes + (end === -1 ? buffered.length : end + HEAD_END.length) > CONNECT_HEAD_BYTES_MAX) {
      return { kind: "TOO_LARGE" };
    }
    if (end === -1) return { kind: "MORE" };
    const rest = buffered.subarray(end + HEAD_END.length);
    const head = parseHead(buffered.subarray(0, end).toString("latin1"), rest);
    if (head === null) return { kind: "MALFORMED" };
    if (head.httpStatus >= 200) return { kind: "HEAD", head };
    interimBytes += end + HEAD_END.length;
    buffered = rest;
    return buffered.length === 0 ? { kind: "MORE" } : read();
  };

  return (chunk) => {
    buffered = buffered.length === 0 ? chunk : Buffer.concat([buffered, chunk]);
    return read();
  };
}

/** `host:port`, an IPv6 address in brackets. */
export function authorityOf(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The bytes of a CONNECT for `authority` (`host:port`, an IPv6 address in brackets). `authorization`: a header's value, or null. */
export function writeConnect(authority: string, authorization: string | null): Buffer {
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(authorization === null ? [] : [`Proxy-Authorization: ${authorization}`]),
  ];
  if (lines.some((line) => CONTROL.test(line))) throw new Error("a CONNECT would have carried a control character");
  return Buffer.from(`${lines.join("\r\n")}${HEAD_END}`, "latin1");
}

function parseHead(text: string, rest: Buffer): ConnectHead | null {
  const [statusLine = "", ...lines] = text.split("\r\n");
  const status = STATUS_LINE.exec(statusLine);
  if (status === null || CONTROL.test(statusLine)) return null;
  const byName = new Map<string, string[]>();
  for (const line of lines) {
    const [, name, value] = HEADER_LINE.exec(line) ?? [];
    if (name === undefined || value === undefined || CONTROL.test(value)) return null;
    const values = byName.get(name.toLowerCase());
    if (values === undefined) byName.set(name.toLowerCase(), [value]);
    else values.push(value);
  }
  const values = (name: string): readonly string[] => byName.get(name) ?? [];
  return {
    httpStatus: Number(status[1]),
    reason: status[2] ?? "",
    values,
    value: (name) => (byName.has(name) ? values(name).join(", ") : null),
    rest,
  };
}
