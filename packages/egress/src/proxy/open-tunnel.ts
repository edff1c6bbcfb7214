import { connect as connectTcp, type Socket } from "node:net";
import type { UpstreamFailure } from "@keble-scraper/contract";
import { codeOf } from "../transport/classify-error.ts";
import type { Stop } from "../transport/stop.ts";
import { classifyRefusal, isBodyWanted, type ProxySilence, silenceFailure } from "./classify-refusal.ts";
import { type ConnectHead, createConnectHeadReader, writeConnect } from "./connect-head.ts";
import { type ExitWish, type ProxyAddress, type ProxyProvider, toProxyAuthorization } from "./proxy-credentials.ts";

/** A tunnel that is wanted. `authority`: `host:port` for the proxy to connect to, an IPv6 address in brackets. */
export type TunnelRequest = {
  readonly proxy: ProxyAddress;
  readonly provider: ProxyProvider;
  readonly authority: string;
  readonly wish: ExitWish;
  /** Takes note of the raw socket at once when it is made. */
  readonly track: (raw: Socket) => void;
  readonly stop: Stop;
  readonly timeoutMs: number;
  readonly wallMs: () => number;
};

/**
 * OPEN: `raw` leads to the authority; bytes that came glued behind the head are still to be read from it. REFUSED: the
 * proxy answered that it will not. SILENT: it gave no answer that could be read. Only OPEN leaves a socket open.
 */
export type Tunnel =
  | { readonly kind: "OPEN"; readonly raw: Socket; readonly head: ConnectHead }
  | { readonly kind: "REFUSED"; readonly head: ConnectHead; readonly failure: UpstreamFailure }
  | { readonly kind: "SILENT"; readonly failure: UpstreamFailure }
  | { readonly kind: "STOPPED" };

/** What is read of a refusal's body, for the code in it, and how long it is waited for. */
const REFUSAL_BYTES_MAX = 4 * 1024;
const REFUSAL_WAIT_MS = 1_000;

/**
 * Dials the proxy and asks it for a tunnel. The proxy's address is the one thing that is dialled unvetted and by name: it
 * comes from settings, by this path alone. Credentials go out in this CONNECT and nowhere else.
 */
export function openTunnel(request: TunnelRequest): Promise<Tunnel> {
  const { proxy, provider, stop, wish } = request;
  const connect = writeConnect(request.authority, toProxyAuthorization(proxy, provider, wish));
  return new Promise((resolve) => {
    if (stop.reason !== null) {
      resolve({ kind: "STOPPED" });
      return;
    }
    const raw = connectTcp({ host: proxy.host, port: proxy.port, noDelay: true });
    request.track(raw);
    const readHead = createConnectHeadReader();
    let isConnected = false;
    let isSettled = false;
    let bodyTimer: NodeJS.Timeout | undefined;
    let refused: { readonly head: ConnectHead; body: Buffer; readonly bytesMax: number } | null = null;

    const settle = (tunnel: Tunnel): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      clearTimeout(bodyTimer);
      off();
      raw.off("readable", onReadable);
      if (tunnel.kind !== "OPEN") raw.destroy();
      resolve(tunnel);
    };
    const silent = (silence: ProxySilence, errorCode: string | null = null): void => {
      if (refused !== null) refuse();
      else settle({ kind: "SILENT", failure: silenceFailure(silence, errorCode) });
    };
    const refuse = (): void => {
      if (refused === null) return;
      const { head, body } = refused;
      settle({
        kind: "REFUSED",
        head,
        failure: classifyRefusal({ head, body, provider, wish, wallMs: request.wallMs() }),
      });
    };
    const onHead = (head: ConnectHead): void => {
      if (head.httpStatus < 300) {
        // RFC 9110 section 9.3.6: a 2xx to CONNECT has no body, whatever its headers say.
        if (head.rest.length > 0) raw.unshift(head.rest);
        settle({ kind: "OPEN", raw, head });
        return;
      }
      const declared = head.value("content-length");
      const bytes = declared !== null && /^\d{1,6}$/.test(declared) ? Number(declared) : 0;
      refused = { head, body: head.rest, bytesMax: isBodyWanted(head, provider) ? bytes : 0 };
      if (bytes > REFUSAL_BYTES_MAX || head.rest.length >= refused.bytesMax) refuse();
      else bodyTimer = setTimeout(refuse, REFUSAL_WAIT_MS);
    };
    const next = (): Buffer | null => (isSettled ? null : readFrom(raw));
    const onReadable = (): void => {
      // What comes after it was settled is the tunnel's.
      for (let chunk = next(); chunk !== null; chunk = next()) {
        if (refused !== null) {
          refused.body = Buffer.concat([refused.body, chunk]).subarray(0, REFUSAL_BYTES_MAX);
          if (refused.body.length >= refused.bytesMax) refuse();
          continue;
        }
        const read = readHead(chunk);
        if (read.kind === "HEAD") onHead(read.head);
        else if (read.kind === "TOO_LARGE") silent("PROXY_HEAD_TOO_LARGE");
        else if (read.kind === "MALFORMED") silent("PROXY_MALFORMED_ANSWER");
      }
    };

    const timer = setTimeout(
      () => {
        silent("PROXY_TIMEOUT");
      },
      Math.max(1, Math.ceil(request.timeoutMs)),
    );
    const off = stop.onStop(() => {
      settle({ kind: "STOPPED" });
    });
    // Stays for the socket's whole life: an error between two owners must not become an uncaught exception.
    raw.on("error", (error) => {
      silent(isConnected ? "PROXY_CLOSED" : "PROXY_UNREACHABLE", codeOf(error));
    });
    raw.once("end", () => {
      silent("PROXY_CLOSED");
    });
    raw.once("close", () => {
      silent(isConnected ? "PROXY_CLOSED" : "PROXY_UNREACHABLE");
    });
    raw.once("connect", () => {
      isConnected = true;
      if (!isSettled) raw.write(connect);
    });
    raw.on("readable", onReadable);
  });
}

function readFrom(raw: Socket): Buffer | null {
  const chunk: unknown = raw.read();
  return Buffer.isBuffer(chunk) ? chunk : null;
}
