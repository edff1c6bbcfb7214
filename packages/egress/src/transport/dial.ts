import { type AddressDial, dialAddress, type DirectDialerOptions } from "./dial-address.ts";
import type { DialContext, Dialer, DialResult, DialTarget } from "./dialer.ts";
import type { Stop } from "./stop.ts";

/** How long an address may take to connect before the next one is tried beside it (RFC 8305 section 8). */
export const NEXT_ADDRESS_AFTER_MS = 250;

/**
 * A dialler that connects to the target's own addresses, in their order: the next one is tried when the last one failed, or
 * beside it when it has not connected within 250 ms. One that has connected gets its share of the budget for TLS first, so
 * that a distant server is not asked for two handshakes. The first that is ready wins, and all others are destroyed.
 */
export function createDirectDialer(options: DirectDialerOptions): Dialer {
  return (target, stop, budgetMs, context) =>
    new Promise((resolve) => {
      race({ target, stop, budgetMs, context, options }, resolve);
    });
}

type Race = {
  readonly target: DialTarget;
  readonly stop: Stop;
  readonly budgetMs: number;
  readonly context: DialContext;
  readonly options: DirectDialerOptions;
};

function race({ target, stop, budgetMs, context, options }: Race, resolve: (result: DialResult) => void): void {
  const { addresses } = target;
  const running = new Set<AddressDial>();
  let next = 0;
  let isSettled = false;
  let nextTimer: NodeJS.Timeout | undefined;
  let last: DialResult = { ok: false, kind: "CONNECT_UNREACHABLE", nativeCode: null };
  const startedAt = performance.now();

  const settle = (result: DialResult): void => {
    if (isSettled) return;
    isSettled = true;
    clearTimeout(nextTimer);
    clearTimeout(budgetTimer);
    off();
    for (const dial of running) dial.abandon();
    resolve(result);
  };
  const tryNextAfter = (ms: number): void => {
    clearTimeout(nextTimer);
    if (next < addresses.length) nextTimer = setTimeout(tryNext, ms);
  };
  const tryNext = (): void => {
    const address = addresses[next];
    if (isSettled || address === undefined) return;
    next += 1;
    const dial = dialAddress(address, target, context, options, {
      onConnected() {
        const leftMs = budgetMs - (performance.now() - startedAt);
        tryNextAfter(Math.max(NEXT_ADDRESS_AFTER_MS, leftMs / (addresses.length - next + 1)));
      },
      onSettled(result) {
        running.delete(dial);
        if (isSettled) {
          if (result.ok) result.socket.destroy();
          return;
        }
        last = result;
        if (result.ok || !isWorthNextAddress(result.kind)) settle(result);
        else if (next < addresses.length) tryNext();
        else if (running.size === 0) settle(last);
      },
    });
    running.add(dial);
    tryNextAfter(NEXT_ADDRESS_AFTER_MS);
  };

  const budgetTimer = setTimeout(
    () => {
      settle({ ok: false, kind: "CONNECT_TIMEOUT", nativeCode: null });
    },
    Math.ceil(Math.max(1, budgetMs)),
  );
  const off = stop.onStop(() => {
    settle({ ok: false, kind: "STOPPED", nativeCode: null });
  });
  if (addresses.length === 0) settle(last);
  tryNext();
}

/** Another address of the same name can only mend what the network did, not what a server that answered said. */
function isWorthNextAddress(kind: Extract<DialResult, { readonly ok: false }>["kind"]): boolean {
  return kind.startsWith("CONNECT_") || kind === "TLS_CLOSED";
}
