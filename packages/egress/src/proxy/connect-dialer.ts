import type { Socket } from "node:net";
import { parseAddress } from "../policy/parse-address.ts";
import { refusedBlock, type VetAddressesOptions } from "../policy/vet-addresses.ts";
import { classifyError, codeOf } from "../transport/classify-error.ts";
import type { Dialer, DialResult, DialTarget } from "../transport/dialer.ts";
import { secureSocket } from "../transport/secure-socket.ts";
import type { Stop } from "../transport/stop.ts";
import { authorityOf, type ConnectHead } from "./connect-head.ts";
import { openTunnel, type TunnelRequest } from "./open-tunnel.ts";
import { type ProxyProvider, parseProxyUrl } from "./proxy-credentials.ts";
import { parseProxyStatus } from "./proxy-status.ts";

/**
 * What a proxy is asked to connect to. ADDRESS: the address we vetted. NAME: the name whose answers we vetted; the proxy
 * resolves it again.
 */
export type TunnelTarget = "ADDRESS" | "NAME";

/** A dialler's proxy. `authorities`: all that are trusted inside the tunnel, in PEM; absent: Node's. */
export type ConnectDialerOptions = {
  readonly url: string;
  readonly provider: ProxyProvider;
  readonly target: TunnelTarget;
  readonly authorities?: readonly string[] | undefined;
  readonly policy: Omit<VetAddressesOptions, "reach">;
  readonly wallMs: () => number;
};

/**
 * A dialler whose connections are tunnels: a CONNECT of our own, http targets too, then TLS for the target's name. Each
 * address gets all that is left of the budget, since a proxy that is slow with one is slow with the next.
 */
export function createConnectDialer(options: ConnectDialerOptions): Dialer {
  const proxy = parseProxyUrl(options.url);
  return async (target, stop, budgetMs, { track, egress }) => {
    const until = performance.now() + budgetMs;
    const tries = options.target === "NAME" && target.name !== null ? target.addresses.slice(0, 1) : target.addresses;
    let last: DialResult = { ok: false, kind: "CONNECT_UNREACHABLE", nativeCode: null };
    for (const address of tries) {
      const authority = authorityOf(options.target === "NAME" ? (target.name ?? address) : address, target.port);
      last = await dialThrough(
        { proxy, provider: options.provider, authority, wish: egress, track, stop, wallMs: options.wallMs },
        { target, address, until, options },
      );
      if (last.ok || !isWorthNextAddress(last) || performance.now() >= until) return last;
    }
    return last;
  };
}

async function dialThrough(
  request: Omit<TunnelRequest, "timeoutMs">,
  hop: {
    readonly target: DialTarget;
    readonly address: string;
    readonly until: number;
    readonly options: ConnectDialerOptions;
  },
): Promise<DialResult> {
  const { target, address, until, options } = hop;
  const tunnel = await openTunnel({ ...request, timeoutMs: until - performance.now() });
  if (tunnel.kind === "STOPPED") return { ok: false, kind: "STOPPED", nativeCode: null };
  if (tunnel.kind !== "OPEN") return { ok: false, kind: "ROUTE", failure: tunnel.failure };
  // A proxy that was told an address may well name its own parent's.
  if (options.target === "NAME" && leadsToForbidden(tunnel.head, { ...options.policy, reach: target.reach })) {
    tunnel.raw.destroy();
    return { ok: false, kind: "REFUSED", nativeCode: null };
  }
  if (target.tls === null) return { ok: true, socket: tunnel.raw, address };
  return secureTunnel(tunnel.raw, { name: target.tls.name, address }, request.stop, until, options.authorities);
}

/** TLS inside a tunnel: what goes wrong from here on is the target's, or that of whoever is at the tunnel's end. */
function secureTunnel(
  raw: Socket,
  target: { readonly name: string | null; readonly address: string },
  stop: Stop,
  until: number,
  authorities: readonly string[] | undefined,
): Promise<DialResult> {
  return new Promise((resolve) => {
    if (stop.reason !== null || raw.destroyed) {
      raw.destroy();
      resolve({ ok: false, kind: stop.reason === null ? "TLS_CLOSED" : "STOPPED", nativeCode: null });
      return;
    }
    let isSettled = false;
    const settle = (result: DialResult): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      off();
      if (!result.ok) raw.destroy();
      resolve(result);
    };
    const onError = (error: unknown): void => {
      const meaning = classifyError(error, "TLS");
      const kind = meaning === "FAULT" || meaning === "HARMLESS" ? "TLS_HANDSHAKE" : meaning;
      settle({ ok: false, kind, nativeCode: codeOf(error) });
    };
    const onClosed = (): void => {
      settle({ ok: false, kind: "TLS_CLOSED", nativeCode: null });
    };
    const timer = setTimeout(
      () => {
        settle({ ok: false, kind: "CONNECT_TIMEOUT", nativeCode: null });
      },
      Math.max(1, Math.ceil(until - performance.now())),
    );
    const off = stop.onStop(() => {
      settle({ ok: false, kind: "STOPPED", nativeCode: null });
    });
    raw.on("error", onError);
    raw.once("close", onClosed);
    const secured = secureSocket(raw, target, authorities);
    secured.on("error", onError);
    secured.once("secureConnect", () => {
      settle({ ok: true, socket: secured, address: target.address });
    });
  });
}

/**
 * Another address can mend what the target's network did, and a gateway status without a code of its own may be that; never
 * what a proxy said about us.
 */
function isWorthNextAddress(result: DialResult): boolean {
  if (result.ok) return false;
  if (result.kind !== "ROUTE") return result.kind === "TLS_CLOSED";
  const { failure } = result;
  if (failure.origin === "TARGET") return failure.code === "CONNECT_FAILURE" || failure.code === "CONNECT_TIMEOUT";
  return failure.code === "PROXY_FAILURE" && (failure.httpStatus ?? 0) >= 500 && failure.nativeCode === undefined;
}

/** Whether the answer names an address as its tunnel's end that may not be reached. */
function leadsToForbidden(head: ConnectHead, policy: VetAddressesOptions): boolean {
  return namedAddresses(head).some((named) => refusedBlock(named, policy, "ANSWER") !== null);
}

/**
 * Where an answer says that its tunnel leads: `next-hop` of the Proxy-Status member nearest to the target (RFC 9209 section
 * 2.1.2), and `destination_ip` of Bright Data's debug header. Names prove nothing and are passed over.
 */
function namedAddresses(head: ConnectHead): readonly string[] {
  const hop = parseProxyStatus(head.value("proxy-status") ?? "")[0]?.nextHop ?? "";
  const debug = /(?:^|;)\s*destination_ip=([^;\s]+)/i.exec(head.value("x-brd-debug") ?? "")?.[1] ?? "";
  return [hop, debug].map(toAddressText).filter((text) => parseAddress(text) !== null);
}

/** Without port, brackets and zone: the zone of a link-local address says on which of the proxy's own wires it is. */
function toAddressText(text: string): string {
  const host = /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? /^([\d.]+):\d+$/.exec(text)?.[1] ?? text;
  return host.replace(/%.*$/s, "");
}
