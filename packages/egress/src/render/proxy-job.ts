import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { VettedUrl } from "../policy/vet-url.ts";
import type { FailureKind } from "../transport/failure-kind.ts";
import type { HopTimings } from "../transport/hop-timings.ts";
import { createSocketMeter } from "../transport/socket-meter.ts";
import type { Stop } from "../transport/stop.ts";
import { JOB_CONNECTIONS_MAX, JOB_REQUESTS_MAX } from "./render-budget.ts";

/** Why the proxy did not bring a response from the watched host. REFUSED: it may not be reached. */
export type ProxyTrouble = { readonly kind: FailureKind | "REFUSED"; readonly nativeCode: string | null };

/** One page's side of the forward proxy: who it is, what it may still use, and what happened to its main document's host. */
export type ProxyJob = {
  readonly credentials: { readonly username: string; readonly password: string };
  readonly stop: Stop;
  /** Spent on the watched hosts' first connections, until `stopTiming`. */
  readonly timings: HopTimings;
  /** Watches this URL's host and port from now on, and forgets what was seen of another. */
  watch(url: VettedUrl): void;
  /** What went wrong with the watched host since `watch`; null when nothing did. */
  trouble(): ProxyTrouble | null;
  /** Notes what went wrong with a host, when it is the watched one. */
  note(url: VettedUrl, trouble: ProxyTrouble): void;
  /** The main document has arrived: what follows is the page's own, and no more timed. */
  stopTiming(): void;
  timingsFor(url: VettedUrl): HopTimings;
  /** Whether one more request or connection may begin; it is counted when it may. Call the answer when it has ended. */
  begin(): (() => void) | null;
  /** Counts a socket towards the target and closes it with the job. */
  track(raw: Socket): void;
  /** Closes a socket of the browser's with the job. */
  adopt(client: Socket): void;
  /** Call with every chunk: compares with the budget. */
  check(): void;
  /** Raw bytes so far, both directions. */
  bytes(): number;
  readonly isExceeded: boolean;
  /** `listener` is called once, when the budget is used up. */
  onExceeded(listener: () => void): void;
  /** Closes every socket of it, at once. Idempotent. */
  close(): void;
  readonly isClosed: boolean;
};

/** A job with unguessable credentials. `budgetBytes` bounds its traffic, `onClose` hears of its end. */
export function createProxyJob(stop: Stop, budgetBytes: number, onClose: (job: ProxyJob) => void): ProxyJob {
  const meter = createSocketMeter(budgetBytes);
  const sockets = new Set<Socket>();
  const exceeded = new Set<() => void>();
  const timings: HopTimings = { dnsMs: null, connectMs: null };
  const untimed: HopTimings = { dnsMs: null, connectMs: null };
  let watched: string | null = null;
  let seen: ProxyTrouble | null = null;
  let isTiming = true;
  let isClosed = false;
  let begun = 0;
  let open = 0;

  const own = (socket: Socket): void => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
    if (isClosed) socket.destroy();
  };
  const check = (): void => {
    meter.check();
    if (!meter.isExceeded) return;
    const listeners = [...exceeded];
    exceeded.clear();
    for (const listener of listeners) listener();
  };

  const job: ProxyJob = {
    credentials: { username: randomBytes(12).toString("hex"), password: randomBytes(24).toString("base64url") },
    stop,
    timings,
    watch(url) {
      watched = keyOf(url);
      seen = null;
    },
    trouble: () => seen,
    note(url, trouble) {
      if (keyOf(url) === watched) seen ??= trouble;
    },
    stopTiming() {
      isTiming = false;
    },
    timingsFor: (url) => (isTiming && keyOf(url) === watched ? timings : untimed),
    begin() {
      if (isClosed || meter.isExceeded || open >= JOB_CONNECTIONS_MAX || begun >= JOB_REQUESTS_MAX) return null;
      begun += 1;
      open += 1;
      let isDone = false;
      return () => {
        if (!isDone) open -= 1;
        isDone = true;
      };
    },
    track(raw) {
      meter.track(raw);
      own(raw);
      // The meter also looks by its own clock: whatever it closed is looked into here.
      raw.once("close", check);
    },
    adopt: own,
    check,
    bytes: () => meter.bytes(),
    get isExceeded() {
      return meter.isExceeded;
    },
    onExceeded(listener) {
      if (meter.isExceeded) listener();
      else exceeded.add(listener);
    },
    close() {
      if (isClosed) return;
      isClosed = true;
      meter.end();
      for (const socket of sockets) socket.destroy();
      onClose(job);
    },
    get isClosed() {
      return isClosed;
    },
  };
  return job;
}

function keyOf(url: VettedUrl): string {
  return `${url.name ?? url.host}:${url.port}`;
}
