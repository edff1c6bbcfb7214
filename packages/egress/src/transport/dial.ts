import { connect as connectTcp } from "node:net";
import { parseAddress } from "../policy/parse-address.ts";
import { classifyError, codeOf } from "./classify-error.ts";
import type { DialContext, Dialer, DialResult, DialTarget } from "./dialer.ts";
import type { FailureKind } from "./failure-kind.ts";
import { secureSocket } from "./secure-socket.ts";
import type { Stop } from "./stop.ts";

/** Sends the socket somewhere else than the policy saw. For tests, which have no public addresses; never from settings. */
export type DialOverride = (address: string, port: number) => { readonly host: string; readonly port: number };

/** What a direct dialler may be given: for tests, which send sockets elsewhere; authorities in PEM instead of Node's. */
export type DirectDialerOptions = {
  readonly dial?: DialOverride | undefined;
  readonly authorities?: readonly string[] | undefined;
};

/** A dialler that connects to the target's own address. */
export function createDirectDialer(options: DirectDialerOptions): Dialer {
  return async (target, stop, budgetMs, context) => {
    let left = budgetMs;
    let last: DialResult = { ok: false, kind: "CONNECT_UNREACHABLE", nativeCode: null };
    for (const [index, address] of target.addresses.entries()) {
      const startedAt = performance.now();
      const shareMs = Math.max(1, left / (target.addresses.length - index));
      last = await dialOne(address, target, { stop, timeoutMs: shareMs, context }, options);
      if (last.ok || !isWorthNextAddress(last.kind)) return last;
      left -= performance.now() - startedAt;
    }
    return last;
  };
}

/** Another address of the same name can only mend what the network did, not what a server that answered said. */
function isWorthNextAddress(kind: FailureKind | "STOPPED" | "ROUTE" | "REFUSED"): boolean {
  return kind.startsWith("CONNECT_") || kind === "TLS_CLOSED";
}

function dialOne(
  address: string,
  target: DialTarget,
  { stop, timeoutMs, context }: { readonly stop: Stop; readonly timeoutMs: number; readonly context: DialContext },
  options: DirectDialerOptions,
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
    context.track(raw);
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
      const secured = secureSocket(raw, { name: target.tls.name, address }, options.authorities);
      secured.on("error", onError);
      secured.once("secureConnect", () => {
        settle({ ok: true, socket: secured, address });
      });
    });
  });
}

/** For `net.connect`: a socket of ours goes to an address and must never ask for a name's. */
export function refuseLookup(): never {
  throw new Error("a connection asked for a name to be resolved");
}

/** Whether the peer is the pinned address; `::ffff:a.b.c.d` is how a dual-stack socket spells an IPv4 peer. */
export function isSameAddress(remote: string | undefined, pinned: string): boolean {
  if (remote === undefined) return false;
  if (remote === pinned) return true;
  const [a, b] = [parseAddress(remote.replace(/^::ffff:(?=\d+\.)/i, "")), parseAddress(pinned)];
  return a !== null && b !== null && a.family === b.family && a.value === b.value;
}
