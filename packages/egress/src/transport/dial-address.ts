import { connect as connectTcp } from "node:net";
import { parseAddress } from "../policy/parse-address.ts";
import { classifyError, codeOf } from "./classify-error.ts";
import type { DialContext, DialResult, DialTarget } from "./dialer.ts";
import type { FailureKind } from "./failure-kind.ts";
import { secureSocket } from "./secure-socket.ts";

/** Sends the socket somewhere else than the policy saw. For tests, which have no public addresses; never from settings. */
export type DialOverride = (address: string, port: number) => { readonly host: string; readonly port: number };

/** What a direct dialler may be given: for tests, which send sockets elsewhere; authorities in PEM instead of Node's. */
export type DirectDialerOptions = {
  readonly dial?: DialOverride | undefined;
  readonly authorities?: readonly string[] | undefined;
};

/** One address being dialled. `abandon` destroys its socket; nothing is reported after it. */
export type AddressDial = { abandon(): void };

/** `onConnected`: TCP is there, TLS begins. `onSettled`: once, unless abandoned; a socket that failed is destroyed. */
export type AddressDialEvents = { onConnected(): void; onSettled(result: DialResult): void };

/** Dials one address of a target: TCP, then the check of whom it reached, then TLS where the target wants it. */
export function dialAddress(
  address: string,
  target: DialTarget,
  context: DialContext,
  options: DirectDialerOptions,
  events: AddressDialEvents,
): AddressDial {
  const to = options.dial?.(address, target.port) ?? { host: address, port: target.port };
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
    if (!result.ok) raw.destroy();
    events.onSettled(result);
  };
  const fail = (kind: FailureKind, nativeCode: string | null = null): void => {
    settle({ ok: false, kind, nativeCode });
  };
  const onError = (error: unknown): void => {
    const meaning = classifyError(error, stage);
    fail(meaning === "FAULT" || meaning === "HARMLESS" ? "CONNECT_UNREACHABLE" : meaning, codeOf(error));
  };

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
    events.onConnected();
    const secured = secureSocket(raw, { name: target.tls.name, address }, options.authorities);
    secured.on("error", onError);
    secured.once("secureConnect", () => {
      settle({ ok: true, socket: secured, address });
    });
  });

  return {
    abandon() {
      isSettled = true;
      raw.destroy();
    },
  };
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
