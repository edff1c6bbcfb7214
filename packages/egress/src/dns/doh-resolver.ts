import type { Socket } from "node:net";
import { createConnectDialer } from "../proxy/connect-dialer.ts";
import { EnoughRead } from "../transport/body-stage.ts";
import { createDecoders, parseContentCodings } from "../transport/content-codings.ts";
import { Connection } from "../transport/connection.ts";
import { createConnectionPool } from "../transport/connection-pool.ts";
import type { DialTarget } from "../transport/dialer.ts";
import { DEFAULT_EGRESS_LIMITS, type EgressLimits } from "../transport/egress-limits.ts";
import { exchange, type ExchangeResult } from "../transport/exchange.ts";
import { createStop, type Stop } from "../transport/stop.ts";
import { createCachingResolver } from "./caching-resolver.ts";
import { type AddressType, readReply, writeQuestion } from "./dns-message.ts";
import { gatherAnswers } from "./gather-answers.ts";
import type { AddressRecord } from "./merge-answers.ts";
import type { Resolver } from "./resolver.ts";

/**
 * - `url`: an RFC 8484 endpoint, https; http only to this machine. It is trusted: its own host is neither resolved nor
 *   vetted here, the proxy is asked for it by name.
 * - `proxyUrl`: the HTTP proxy that its connections go through, by CONNECT.
 * - `timeoutMs`: for one whole resolve; absent means 5,000, since a proxy and TLS are on the way.
 * - `authorities`: for tests, in PEM, instead of Node's.
 */
export type DohResolverOptions = {
  readonly url: string;
  readonly proxyUrl: string;
  readonly timeoutMs?: number;
  readonly authorities?: readonly string[] | undefined;
};

/** A resolver with connections of its own. `close` ends them all, and what is being asked with them; it resolves when they are closed. */
export type DohResolver = Resolver & { close(): Promise<void>; sockets(): number };

const DOH_TIMEOUT_MS = 5_000;

/** A reply over TCP has at most this many bytes. */
const REPLY_BYTES_MAX = 65_535;

const LIMITS: EgressLimits = { ...DEFAULT_EGRESS_LIMITS, idleSocketsMax: 4 };

const SCOPE_KEY = "doh";

/**
 * A resolver that asks a DNS-over-HTTPS server through an HTTP proxy, one A and one AAAA question per name, and remembers
 * answers as `createCachingResolver` says. TLS verifies the server's name. Throws when one of the URLs cannot be used.
 */
export function createDohResolver(options: DohResolverOptions): DohResolver {
  const server = readServer(options.url);
  const timeoutMs = options.timeoutMs ?? DOH_TIMEOUT_MS;
  const dial = createConnectDialer({
    url: options.proxyUrl,
    provider: "PLAIN",
    target: "NAME",
    authorities: options.authorities,
    policy: {},
    wallMs: () => Date.now(),
  });
  const pool = createConnectionPool(LIMITS.idleSocketsMax);
  const sockets = new Set<Socket>();
  const track = (raw: Socket): void => {
    sockets.add(raw);
    raw.once("close", () => sockets.delete(raw));
  };

  const open = async (stop: Stop): Promise<Connection> => {
    const dialled = await dial(server.target, stop, timeoutMs, { track, egress: { country: null, session: null } });
    if (dialled.ok) return new Connection(SCOPE_KEY, dialled.socket, LIMITS);
    if (dialled.kind === "STOPPED") throw new DohError("ECANCELLED");
    throw new DohError(dialled.kind === "ROUTE" ? "EDOHPROXY" : (dialled.nativeCode ?? "EDOHCONNECT"));
  };

  const ask = async (name: string, type: AddressType, stop: Stop): Promise<readonly AddressRecord[]> => {
    const question = writeQuestion(name, type);
    if (question === null) throw new DohError("EBADNAME");
    for (;;) {
      const resting = pool.take(SCOPE_KEY);
      const connection = resting ?? (await open(stop));
      const answered = await send(connection, server, question, stop);
      if (answered.result.kind === "DONE" && answered.result.isReusable) pool.put(connection);
      // A connection that rested may be gone before it was used; then the next one serves.
      if (answered.result.kind === "NOT_SENT" && resting !== null) continue;
      return readAnswer(answered, question);
    }
  };

  const resolver = createCachingResolver({
    resolve(name, { signal }) {
      const stop = createStop({ signal, deadline: Infinity, limitMs: timeoutMs, nowMs: performance.now() });
      const questions = (["A", "AAAA"] as const).map((type) => ask(name, type, stop));
      const outcome = gatherAnswers(questions, timeoutMs, signal, () => {
        stop.abort();
      });
      return outcome.finally(() => {
        stop.end();
      });
    },
  });

  return {
    ...resolver,
    async close() {
      pool.close();
      const closed = [...sockets].map((socket) => new Promise((resolve) => socket.once("close", resolve)));
      for (const socket of sockets) socket.destroy();
      await Promise.all(closed);
    },
    sockets: () => sockets.size,
  };
}

type DohServer = { readonly target: DialTarget; readonly host: string; readonly path: string };
type Answered = { readonly result: ExchangeResult; readonly body: Buffer };

function readServer(text: string): DohServer {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isUsable = url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.password === "";
  if (!isUsable) throw new Error("a DNS-over-HTTPS server needs an https URL without credentials");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const isLocal = host === "localhost" || host === "::1" || /^127(?:\.\d+){3}$/.test(host);
  const isSecure = url.protocol === "https:";
  if (!isSecure && !isLocal) throw new Error("names are asked for in the clear on this machine only");
  const isAddress = host.includes(":") || /^[\d.]+$/.test(host);
  const name = isAddress ? null : host;
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
  const tls = isSecure ? { name } : null;
  const query = url.search === "" ? "?dns=" : `${url.search}&dns=`;
  return {
    target: { addresses: [host], name, port, reach: "LOCAL", tls },
    host: url.host,
    path: url.pathname + query,
  };
}

async function send(connection: Connection, server: DohServer, question: Buffer, stop: Stop): Promise<Answered> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const last = {
    write(chunk: Buffer) {
      bytes += chunk.length;
      if (bytes > REPLY_BYTES_MAX) throw new EnoughRead();
      chunks.push(chunk);
    },
    end() {},
    abandon() {},
  };
  const result = await exchange({
    connection,
    limits: LIMITS,
    stop,
    progress: { sent: false, head: null, wireBytes: 0 },
    request: {
      method: "GET",
      target: server.path + question.toString("base64url"),
      headers: ["host", server.host, "accept", "application/dns-message"],
    },
    onHead(head) {
      const codings = head.mayHaveBody ? parseContentCodings(head.values("content-encoding"), LIMITS.codingsMax) : null;
      if (codings === null) return { do: "SKIP" };
      const stage = createDecoders(codings, last, 2 * REPLY_BYTES_MAX);
      return { do: "READ", stage, wireBytesMax: 2 * REPLY_BYTES_MAX, ceilingBytes: 16 * REPLY_BYTES_MAX };
    },
  });
  return { result, body: Buffer.concat(chunks) };
}

function readAnswer({ result, body }: Answered, question: Buffer): readonly AddressRecord[] {
  if (result.kind === "STOPPED") throw new DohError("ECANCELLED");
  if (result.kind !== "DONE") throw new DohError("EDOHCONNECTION");
  const { head } = result;
  // A 2xx also for a name that is not there (RFC 8484 section 4.2.1): any other status is the server's, not the name's.
  if (head.httpStatus < 200 || head.httpStatus > 299) throw new DohError(`EDOHSTATUS${head.httpStatus}`);
  if (!/^application\/dns-message\b/i.test(head.value("content-type") ?? "")) throw new DohError("EDOHTYPE");
  const reply = readReply(body, question);
  if (!reply.ok) throw new DohError(reply.nativeCode);
  // A cache on the way may have held the reply for a while: its age is not ours to add to the TTL.
  const ageS = /^\d{1,9}$/.test(head.value("age") ?? "") ? Number(head.value("age")) : 0;
  return reply.records.map(({ address, ttl }) => ({ address, ttl: Math.max(0, ttl - ageS) }));
}

/** `code`: in c-ares' words, or one of this file's own that begins with EDOH. */
class DohError extends Error {
  override name = "DohError";
  readonly code: string;
  constructor(code: string) {
    super(code);
    this.code = code;
  }
}
