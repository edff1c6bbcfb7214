/** The limits of one attempt besides what its request says. Every one of them holds while bytes stream. */
export type EgressLimits = {
  /** TCP and TLS of one hop together, over all addresses that are tried. Setting: `SCRAPER_CONNECT_TIMEOUT_MS`. */
  readonly connectTimeoutMs: number;
  /** From the request's first byte to the end of the final response head; interim responses do not extend it. */
  readonly responseTimeoutMs: number;
  /** Between two reads of a body, while we are ready to take more. */
  readonly bodyIdleTimeoutMs: number;
  /** All of one robots.txt, its redirects included. An attempt waits no longer than its own limit, whatever this says. */
  readonly robotsTimeoutMs: number;
  /** How long an unused connection is kept; a server's `Keep-Alive: timeout` may only shorten it. */
  readonly idleSocketMs: number;
  /** Unused connections kept in all; the one unused longest is closed for a new one. */
  readonly idleSocketsMax: number;
  /** Vetted addresses tried for one hop, each with its share of the connect timeout. */
  readonly addressesMax: number;
  /** Names and values of one header block, trailers included. */
  readonly headerBytesMax: number;
  readonly headerLinesMax: number;
  /** Interim (1xx) responses before the final one. */
  readonly informationalMax: number;
  readonly redirectsMax: number;
  /** Content codings on one body. */
  readonly codingsMax: number;
  /** Coded body bytes beyond `maxBodyBytes`: what a coding may cost when it does not shrink. */
  readonly wireSlackBytes: number;
};

/** The figures of the design: see the README's table. */
export const DEFAULT_EGRESS_LIMITS: EgressLimits = {
  connectTimeoutMs: 10_000,
  responseTimeoutMs: 30_000,
  bodyIdleTimeoutMs: 15_000,
  robotsTimeoutMs: 30_000,
  idleSocketMs: 4_000,
  idleSocketsMax: 512,
  addressesMax: 3,
  headerBytesMax: 16 * 1024,
  headerLinesMax: 200,
  informationalMax: 20,
  redirectsMax: 5,
  codingsMax: 3,
  wireSlackBytes: 128 * 1024,
};

/** Bytes a connection may deliver before the final head: interim heads and reason phrases are counted nowhere else. */
export function headCeilingBytes(limits: EgressLimits): number {
  return 8 * limits.headerBytesMax + SOCKET_READ_AHEAD_BYTES;
}

/**
 * Bytes a connection may deliver for one response: the body's wire limit, an eighth of it for chunk framing (chunks of
 * 40 bytes still fit), and its heads. Extensions of chunks reach no body event, so only this stops an endless one.
 */
export function responseCeilingBytes(limits: EgressLimits, wireBytesMax: number): number {
  return wireBytesMax + Math.ceil(wireBytesMax / 8) + headCeilingBytes(limits);
}

/** What a socket may have read ahead of the parser. */
const SOCKET_READ_AHEAD_BYTES = 128 * 1024;

/** What one hop may cost beside its body on a route that is paid by the byte: handshakes, heads, the request. */
const PAID_HOP_BYTES = 32 * 1024;

/** TLS adds 22 bytes to a record, and many servers send records of one packet, 1,400 bytes: 1.6 %. */
const RECORDS_SHARE = 50;

/**
 * Raw socket bytes, both directions, that one attempt may use on a route that is paid by the byte: what a reservation pays
 * for, and where the transport ends the attempt. The body, 2 % of it for TLS, the slack, and 32 KiB a hop.
 */
export function socketCeilingBytes(limits: EgressLimits, maxBodyBytes: number): number {
  const recordBytes = Math.ceil(maxBodyBytes / RECORDS_SHARE);
  return maxBodyBytes + recordBytes + limits.wireSlackBytes + (limits.redirectsMax + 1) * PAID_HOP_BYTES;
}
