import { type Socket, connect as connectTcp } from "node:net";
import { connect as connectTls } from "node:tls";
import { parseAddress } from "../policy/parse-address.ts";
import { classifyError, codeOf } from "./classify-error.ts";
import type { FailureKind } from "./failure-kind.ts";
import type { Stop } from "./stop.ts";

/** Where one hop goes. `addresses` were vetted by the caller; nothing here resolves a name. */
export type DialTarget = {
  readonly addresses: readonly string[];
  readonly port: number;
  /** The name that the certificate must carry and that SNI sends; an IP literal's certificate must carry the address. Null: no TLS. */
  readonly tls: { readonly name: string | null } | null;
};

export type DialResult =
  | { readonly ok: true; readonly socket: Socket; readonly address: string }
  | { readonly ok: false; readonly kind: FailureKind | "STOPPED"; readonly nativeCode: string | null };

/** Dials a vetted address. A socket that fails, stops or is late is destroyed before the answer. */
export type Dialer = (target: DialTarget, stop: Stop, budgetMs: number) => Promise<DialResult>;

/** Sends the socket somewhere else than the policy saw. For tests, which have no public addresses; never from settings. */
export type DialOverride = (address: string, port: number) => { readonly host: string; readonly port: number };

/** A dialler whose raw sockets are in `sockets` from their creation to their close. */
export function createDialer(options: {
  readonly sockets: Set<Socket>;
  readonly dial?: DialOverride | undefined;
  /** Trusted authorities in PEM, instead of Node's. */
  readonly authorities?: readonly string[] | undefined;
}): Dialer {
  return async (target, stop, budgetMs) => {
    let left = budgetMs;
    let last: DialResult = { ok: false, kind: "CONNECT_UNREACHABLE", nativeCode: null };
    for (const [index, address] of target.addresses.entries()) {
      const startedAt = performance.now();
      const shareMs = Math.max(1, left / (target.addresses.length - index));
      last = await dialOne(address, target, stop, shareMs, options);
      if (last.ok || !isWorthNextAddress(last.kind)) return last;
      left -= performance.now() - startedAt;
    }
    return last;
  };
}

/** Another address of the same name can only mend what the network did, not what a server that answered said. */
function isWorthNextAddress(kind: FailureKind | "STOPPED"): boolean {
  return kind.startsWith("CONNECT_") || kind === "TLS_CLOSED";
}

function dialOne(
  address: string,
  target: DialTarget,
  stop: Stop,
  timeoutMs: number,
  options: {
    readonly sockets: Set<Socket>;
    readonly dial?: DialOverride | undefined;
    readonly authorities?: readonly string[] | undefined;
  },
): Promise<DialResult> {
  const to = options.dial?.(address, target.port) ?? { host: address, port: target.port };
  return new Promise((resolve) => {
    if (stop.reason !== null) {
      resolve({ ok: false, kind: "STOPPED", nativeCode: null });
      return;
    }
    const raw = connectTcp({
      host: to.host,
      port: to.port,
      autoSelectFamily: false,
      lookup: refuseLookup,
      noDelay: true,
    });
    options.sockets.add(raw);
    raw.once("close", () => options.sockets.delete(raw));
    let stage: "TCP" | "TLS" = "TCP";
    let isSettled = false;

    const settle = (result: DialResult): void => {
      if (isSettled) return;
      isSettled = true;
      clearTimeout(timer);
      off();
      if (!result.ok) raw.destroy();
      resolve(result);
    };
    const fail = (kind: FailureKind | "STOPPED", nativeCode: string | null = null): void => {
      settle({ ok: false, kind, nativeCode });
    };
    const onError = (error: unknown): void => {
      const meaning = classifyError(error, stage);
      fail(meaning === "FAULT" || meaning === "HARMLESS" ? "CONNECT_UNREACHABLE" : meaning, codeOf(error));
    };
    const timer = setTimeout(() => {
      fail("CONNECT_TIMEOUT");
    }, Math.ceil(timeoutMs));
    const off = stop.onStop(() => {
      fail("STOPPED");
    });

    // Stays for the socket's whole life: an error between two owners must not become an uncaught exception.
    raw.on("error", onError);
    raw.once("close", () => {
      fail(stage === "TCP" ? "CONNECT_RESET" : "TLS_CLOSED");
    });
    raw.once("connect", () => {
      if (isSettled) return;
      if (!isSameAddress(raw.remoteAddress, to.host)) {
        fail("CONNECT_UNREACHABLE");
        return;
      }
      if (target.tls === null) {
        settle({ ok: true, socket: raw, address });
        return;
      }
      stage = "TLS";
      const { name } = target.tls;
      const secured = connectTls({
        socket: raw,
        host: name ?? address,
        servername: name ?? "",
        ALPNProtocols: ["http/1.1"],
        minVersion: "TLSv1.2",
        // Explicit, so that NODE_TLS_REJECT_UNAUTHORIZED changes nothing.
        rejectUnauthorized: true,
        ...(options.authorities === undefined ? {} : { ca: [...options.authorities] }),
      });
      secured.on("error", onError);
      secured.once("secureConnect", () => {
        settle({ ok: true, socket: secured, address });
      });
    });
  });
}

function refuseLookup(): never {
  throw new Error("a connection asked for a name to be resolved");
}

/** Whether the peer is the pinned address; `::ffff:a.b.c.d` is how a dual-stack socket spells an IPv4 peer. */
function isSameAddress(remote: string | undefined, pinned: string): boolean {
  if (remote === undefined) return false;
  if (remote === pinned) return true;
  const [a, b] = [parseAddress(remote.replace(/^::ffff:(?=\d+\.)/i, "")), parseAddress(pinned)];
  return a !== null && b !== null && a.family === b.family && a.value === b.value;
}
