import type { CDPSession } from "playwright-core";
import { readNetError } from "./classify-net-error.ts";

/** How far a page has to be before it is captured. Bounded each time: what has not come by then is not waited for. */
export const WAIT_UNTIL = ["DOM_CONTENT_LOADED", "LOAD", "NETWORK_IDLE"] as const;
export type WaitUntil = (typeof WAIT_UNTIL)[number];

/** What the loading of a document came to. LOADED may mean that its last images did not come in time. */
export type LoadEnd =
  | { readonly kind: "LOADED" }
  | { readonly kind: "IDLE" }
  | { readonly kind: "FAILED"; readonly netError: string };

/** A document that was committed, by its ids, and how long it may take. */
export type LoadAsking = {
  readonly loaderId: string;
  readonly requestId: string;
  readonly waitUntil: WaitUntil;
  /** Silence, of the document and everything that it loads, while it is not complete. */
  readonly idleTimeoutMs: number;
  /** From the document's own end to what `waitUntil` says. */
  readonly settleTimeoutMs: number;
};

/** Watches what a page loads. */
export type PageWatch = {
  /** Waits until a document and what belongs to it are there, or will not be. */
  loaded(asking: LoadAsking): Promise<LoadEnd>;
  /** `Set-Cookie` values of a response, which no other place shows; in order. */
  cookies(requestId: string): readonly string[];
  /** Calls `listener` once when the page's responses came to more decoded bytes than they may. */
  onTooLarge(listener: () => void): void;
  end(): void;
};

/** A document that says it will leave within this long is waited for: sites forward their visitors so. */
const LEAVES_MS_MAX = 1_000;

/** Chromium's names of how far a document is. */
const EVENTS = { DOM_CONTENT_LOADED: "DOMContentLoaded", LOAD: "load", NETWORK_IDLE: "networkIdle" } as const;

/** How often silence is looked at, as a share of the longest one. */
const LOOKS_PER_TIMEOUT = 10;

/** Documents of the main frame that are looked at: the first ones are the navigations, the rest are refused anyway. */
const MAINS_MAX = 16;

/** Watches a page that has loaded nothing yet. `decodedBytesMax` bounds what its own frames' responses come to. */
export async function createPageWatch(
  session: CDPSession,
  frameId: string,
  decodedBytesMax: number,
): Promise<PageWatch> {
  const reached = new Map<string, Set<string>>();
  /** The main frame's own requests; a page can make no end of others. */
  const mains = new Set<string>();
  const failed = new Map<string, string>();
  const finished = new Set<string>();
  const cookies = new Map<string, readonly string[]>();
  const watchers = new Set<() => void>();
  const tooLarge = new Set<() => void>();
  let decodedBytes = 0;
  let isTooLarge = false;
  let lastDataAt = performance.now();
  let leavesAt = 0;

  const changed = (): void => {
    for (const watcher of watchers) watcher();
  };
  session.on("Page.lifecycleEvent", (event) => {
    if (event.frameId !== frameId || (reached.size >= MAINS_MAX && !reached.has(event.loaderId))) return;
    const names = reached.get(event.loaderId) ?? new Set();
    reached.set(event.loaderId, names.add(event.name));
    changed();
  });
  session.on("Page.frameScheduledNavigation", (event) => {
    const delayMs = event.delay * 1_000;
    if (event.frameId === frameId && delayMs <= LEAVES_MS_MAX) leavesAt = performance.now() + delayMs;
  });
  session.on("Network.requestWillBeSent", (event) => {
    if (event.type === "Document" && event.frameId === frameId && mains.size < MAINS_MAX) mains.add(event.requestId);
  });
  session.on("Network.dataReceived", ({ dataLength }) => {
    lastDataAt = performance.now();
    decodedBytes += dataLength;
    if (decodedBytes <= decodedBytesMax || isTooLarge) return;
    isTooLarge = true;
    for (const listener of tooLarge) listener();
  });
  session.on("Network.responseReceivedExtraInfo", ({ requestId, headers }) => {
    if (cookies.size >= MAINS_MAX) return;
    const found = Object.entries(headers).find(([name]) => name.toLowerCase() === "set-cookie");
    // The protocol puts the values of one name on lines of their own.
    if (found !== undefined) cookies.set(requestId, found[1].split("\n"));
  });
  session.on("Network.loadingFinished", ({ requestId }) => {
    lastDataAt = performance.now();
    if (!mains.has(requestId)) return;
    finished.add(requestId);
    changed();
  });
  session.on("Network.loadingFailed", ({ requestId, errorText }) => {
    if (!mains.has(requestId)) return;
    failed.set(requestId, readNetError(errorText));
    changed();
  });
  await session.send("Network.enable");
  await session.send("Page.enable");
  await session.send("Page.setLifecycleEventsEnabled", { enabled: true });

  /** Lets the page do what its last event made it do. */
  const takeTurn = async (): Promise<void> => {
    const { executionContextId: contextId } = await session.send("Page.createIsolatedWorld", { frameId });
    const expression = "new Promise((resolve) => setTimeout(resolve, 0))";
    await session.send("Runtime.evaluate", { contextId, expression, awaitPromise: true });
  };
  const timers = new Set<NodeJS.Timeout>();
  const until = (isTrue: () => boolean, options: { readonly timeoutMs: number } | { readonly idleMs: number }) =>
    new Promise<"TRUE" | "TIMEOUT">((resolve) => {
      const settle = (end: "TRUE" | "TIMEOUT"): void => {
        watchers.delete(watcher);
        clearInterval(timer);
        resolve(end);
      };
      const watcher = (): void => {
        if (isTrue()) settle("TRUE");
      };
      const startedAt = performance.now();
      const limitMs = "idleMs" in options ? options.idleMs : options.timeoutMs;
      const timer = setInterval(
        () => {
          const since = "idleMs" in options ? Math.max(startedAt, lastDataAt) : startedAt;
          if (performance.now() - since >= limitMs) settle("TIMEOUT");
        },
        Math.max(1, limitMs / LOOKS_PER_TIMEOUT),
      ).unref();
      timers.add(timer);
      watchers.add(watcher);
      watcher();
    });
  return {
    async loaded({ loaderId, requestId, waitUntil, idleTimeoutMs, settleTimeoutMs }) {
      leavesAt = 0;
      const has = (name: string): boolean => reached.get(loaderId)?.has(name) === true;
      const isThere = (): boolean =>
        failed.has(requestId) || (has(EVENTS.DOM_CONTENT_LOADED) && finished.has(requestId));
      if ((await until(isThere, { idleMs: idleTimeoutMs })) === "TIMEOUT") return { kind: "IDLE" };
      if (!failed.has(requestId)) await until(() => has(EVENTS[waitUntil]), { timeoutMs: settleTimeoutMs });
      const netError = failed.get(requestId);
      if (netError === undefined) await takeTurn();
      const leavesInMs = leavesAt - performance.now();
      // The request itself is what ends this wait: see the gate.
      if (netError === undefined && leavesAt > 0)
        await until(() => false, { timeoutMs: Math.max(0, leavesInMs) + LEAVES_MS_MAX });
      return netError === undefined ? { kind: "LOADED" } : { kind: "FAILED", netError };
    },
    cookies: (requestId) => cookies.get(requestId) ?? [],
    onTooLarge(listener) {
      if (isTooLarge) listener();
      else tooLarge.add(listener);
    },
    end() {
      for (const timer of timers) clearInterval(timer);
      timers.clear();
      watchers.clear();
      tooLarge.clear();
    },
  };
}
